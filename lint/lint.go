// Package lint shows forgotten guards as lint findings do.
package lint
