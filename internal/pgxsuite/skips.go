package main

import "strings"

// skip is a test, or one mode of a test, that can't pass through fencerow.
type skip struct {
	name   string
	reason string
	says   string // what its failure says, so that no other one hides behind it
	only   string // the run in which it can't pass; "" is every one
}

const (
	forbidsRaw = "design forbids: Raw must not give pgx's connection"
	saysRaw    = "is *driver.Conn, not *stdlib.Conn"

	forbidsCascade = "design forbids: DROP FUNCTION ... CASCADE, which may take a protected table's triggers along (FR201)"
	saysCascade    = "DROP ... CASCADE of this kind"
)

var skips = []skip{
	{name: "TestConnRaw", reason: forbidsRaw, says: saysRaw},
	{name: "TestConnQueryRowConstraintErrors", only: protectOther, says: saysCascade, reason: forbidsCascade},
	{name: "TestConnQueryRowConstraintErrors", only: checkAll, says: saysCascade, reason: forbidsCascade},
	{name: "TestCheckIdleConn", reason: forbidsRaw, says: saysRaw},
}

// covers reports whether a test or subtest is the listed one or in it.
func (s skip) covers(test string) bool {
	return test == s.name || strings.HasPrefix(test, s.name+"/")
}

// skipsOf are the entries for a run.
func skipsOf(run string, list []skip) (out []skip) {
	for _, s := range list {
		if s.only == "" || s.only == run {
			out = append(out, s)
		}
	}
	return out
}

// listed finds the entry for a test.
func listed(list []skip, test string) (skip, bool) {
	for _, s := range list {
		if s.covers(test) {
			return s, true
		}
	}
	return skip{}, false
}
