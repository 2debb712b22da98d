// Package migrateapp migrates with golang-migrate.
package migrateapp
