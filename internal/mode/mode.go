// Package mode has the modes of a protected table. Package rewrite, which needs a
// C compiler, and package migrations, which doesn't, give users the same type.
package mode

import "fmt"

// Mode says which tokens a protected table takes, by its name in the registry. There
// is no default: the wrong mode loses writes, so it is chosen when the table is
// registered.
type Mode string

// The modes of a protected table.
const (
	// Strict accepts one write per token and row: a token that is larger than the
	// row's. It is for tokens that are drawn for each write.
	Strict Mode = "strict"
	// Lease lets a holder write a row as often as it likes under one token: one that
	// is not smaller than the row's.
	Lease Mode = "lease"
)

// String returns "strict" or "lease", as in the registry.
func (m Mode) String() string { return string(m) }

// Parse reads the name of a mode as String writes it.
func Parse(s string) (Mode, error) {
	switch m := Mode(s); m {
	case Strict, Lease:
		return m, nil
	}
	return "", fmt.Errorf("unknown mode %q: choose strict (one write per token and row) or lease (a holder writes as often as it likes)", s)
}
