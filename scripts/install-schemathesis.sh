#!/bin/sh
# Installs Schemathesis, which tests the API against its OpenAPI document, into a virtual environment in node_modules/.cache.
# Prints the path of the program. Needs python3 with venv, and PyPI.
set -eu
cd "$(dirname "$0")/.."
version=4.32.5
folder="$PWD/node_modules/.cache/schemathesis-$version"
if [ ! -x "$folder/bin/schemathesis" ]; then
  rm -rf "$folder.new" "$folder"
  python3 -m venv "$folder" >&2
  "$folder/bin/pip" install --quiet --disable-pip-version-check "schemathesis==$version" >&2
fi
echo "$folder/bin/schemathesis"
