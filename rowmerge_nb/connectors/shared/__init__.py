"""What several connectors need: hashes, transforms, numbers in order, disks, folders, and what dead processes have left."""
