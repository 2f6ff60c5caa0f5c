"""Helpers of several connectors: hashes, transforms, disk errors, folders, and orphans."""
