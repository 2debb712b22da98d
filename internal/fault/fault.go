// Package fault has the errors that several packages return as one, so that a
// program needs to ask for only one of them with errors.Is.
package fault

import "errors"

// ErrNotInstalled says that the database doesn't have schema fencing, or not all that
// the program needs of it.
var ErrNotInstalled = errors.New("schema fencing is not installed")
