#!/bin/sh
# Makes sure that a PostgreSQL server can be had for tests and the demo. Does
# nothing if FENCEROW_DATABASE_URL names one or binaries are found; else root
# on Debian or Ubuntu gets the package. It never fails: where it can't help,
# package localpg tries a download, and says what is missing.
set -eu

# has DIR: is there a whole server in it? Client packages leave half of one.
has() {
	[ -x "$1/initdb" ] && [ -x "$1/postgres" ]
}

# found looks where find.go does.
found() {
	# A wrong FENCEROW_PG_BIN is for the Go code to complain about.
	[ -n "${FENCEROW_PG_BIN:-}" ] && return 0
	if command -v pg_config >/dev/null 2>&1 && has "$(pg_config --bindir 2>/dev/null)"; then
		return 0
	fi
	old_ifs=$IFS
	IFS=:
	for dir in $PATH; do
		IFS=$old_ifs
		[ -x "$dir/postgres" ] || continue
		exe=$(readlink -f "$dir/postgres" 2>/dev/null) || continue
		has "${exe%/*}" && return 0
	done
	IFS=$old_ifs
	for dir in /usr/lib/postgresql/*/bin /opt/homebrew/opt/postgresql*/bin /usr/local/opt/postgresql*/bin; do
		has "$dir" && return 0
	done
	return 1
}

[ -z "${FENCEROW_DATABASE_URL:-}" ] || exit 0
! found || exit 0
[ "$(id -u)" = 0 ] || exit 0
command -v apt-get >/dev/null 2>&1 || exit 0

echo "localpg: no PostgreSQL server found, installing the package postgresql" >&2

# The tests make clusters of their own; a system-wide one would only listen on
# 5432 and be in the way.
conf=/etc/postgresql-common/createcluster.conf
if [ ! -e "$conf" ]; then
	mkdir -p "${conf%/*}"
	echo 'create_main_cluster = false' >"$conf"
fi

export DEBIAN_FRONTEND=noninteractive UCF_FORCE_CONFFOLD=1
# Without a network the download may still find a mirror of its own.
if ! apt-get -qq update >&2 || ! apt-get -qq -y --no-install-recommends install postgresql >&2; then
	echo "localpg: apt-get could not install postgresql, going on without" >&2
fi
exit 0
