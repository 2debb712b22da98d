package check

import "github.com/fencerow/fencerow/internal/parser"

// Start makes the parser ready in the background, so that the first text to be checked
// needn't wait for it. Without cgo that takes seconds, and with it nothing.
func Start() { parser.Start() }
