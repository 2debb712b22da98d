// Package squirrelapp does what programs do with squirrel.
package squirrelapp
