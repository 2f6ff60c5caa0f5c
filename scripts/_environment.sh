# Sourced by the other scripts: goes to the project's root, finds a Python, and has scripts/_environment.py make or update an environment.
# Usage: source _environment.sh EXTRA FOLDER, where EXTRA is "" (what a user needs), dev, bench or site, and FOLDER is .venv where it is not given.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

find_python() {
    local name
    for name in ${PYTHON:-} python3.13 python3.12 python3.11 python3 python; do
        if "$name" -c 'import ensurepip, sys, venv; raise SystemExit(sys.version_info < (3, 11))' >/dev/null 2>&1; then
            echo "$name"
            return
        fi
    done
    echo "Python 3.11 or newer with its venv module is needed, and none was found as python3.13, python3.12, python3.11 or python3." >&2
    echo "Install one, or name it: PYTHON=/path/to/python $0" >&2
    return 1
}

python="$(find_python)"
"$python" scripts/_environment.py "${1:-}" "${2:-.venv}"
# Activating is these two lines; kernels and workers then find the same Python.
export VIRTUAL_ENV="$PWD/${2:-.venv}"
export PATH="$VIRTUAL_ENV/bin:$PATH"
