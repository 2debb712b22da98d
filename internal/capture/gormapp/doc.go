// Package gormapp does what programs do with GORM.
package gormapp
