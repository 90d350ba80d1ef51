#!/usr/bin/env bash
# bare-machine.sh COMMAND: runs COMMAND in a fresh clone of this repository's HEAD, as on a machine that has a minimal Debian,
# git, curl, openssl, Node and npm, and nothing else: no browser, promtool, Java, Docker, Python, PostgreSQL, apt, ps or compiler. HOME is
# empty, and no locale is set.
# Passes on only TEST_REPORT, proxies, npm's configuration and certificates of the environment.
set -euo pipefail
command=${1:?usage: bare-machine.sh COMMAND}
repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# Part of what `debian:stable-slim` brings, besides Node and what the README's commands use: coreutils, findutils, grep, sed, tar, gzip, mount, passwd, a shell.
tools='bash sh env node npm npx git curl openssl
  [ basename cat chgrp chmod chown cp cut date dd df dirname du echo expr false find grep egrep fgrep gunzip gzip head hostname id
  install kill ln ls mkdir mktemp mount mv nice nohup nproc od pwd readlink realpath rm rmdir sed seq sha256sum sleep sort
  stat tail tar tee test timeout touch tr true tty uname umount uniq useradd userdel wc which xargs'

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work" # PostgreSQL's own user must be able to enter, as in any checkout
mkdir "$work/bin" "$work/home"
for tool in $tools; do
  file=$(type -P "$tool") && ln -s "$file" "$work/bin/$tool"
done
git -c safe.directory='*' clone -q "$repository" "$work/clone"

environment=(PATH="$work/bin" HOME="$work/home" TERM=dumb)
for name in TEST_REPORT HTTP_PROXY HTTPS_PROXY NO_PROXY http_proxy https_proxy no_proxy NODE_EXTRA_CA_CERTS SSL_CERT_FILE; do
  [ -z "${!name:-}" ] || environment+=("$name=${!name}")
done
environment+=("NPM_CONFIG_USERCONFIG=$(npm config get userconfig 2> /dev/null)")

cd "$work/clone"
env -i "${environment[@]}" bash -c "$command"
