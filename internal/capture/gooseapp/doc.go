// Package gooseapp migrates with goose.
package gooseapp
