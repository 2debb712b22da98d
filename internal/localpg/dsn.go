package localpg

import (
	"errors"
	"strings"

	"github.com/jackc/pgx/v5"
)

// errURL has nothing of the value in it, nor of pgx's complaint, which quotes
// the value: there may be a password anywhere in a malformed one.
var errURL = errors.New(envURL + " is not a usable connection string (not shown: it may hold a password): " +
	"write it as postgres://user@host:5432/postgres or as host=... user=... dbname=postgres")

// checkURL makes sure that the connection string can be read, also with
// another database put in.
func checkURL(dsn string) error {
	const probe = "fencerow probe"
	if _, err := pgx.ParseConfig(dsn); err != nil {
		return errURL
	}
	config, err := pgx.ParseConfig(withDatabase(dsn, probe))
	if err != nil || config.Database != probe {
		return errURL
	}
	return nil
}

// withDatabase puts another database into a connection string of either form
// and leaves all else as it is.
func withDatabase(dsn, database string) string {
	if strings.HasPrefix(dsn, "postgres://") || strings.HasPrefix(dsn, "postgresql://") {
		return urlWithDatabase(dsn, database)
	}
	return keywordsWithDatabase(dsn, database)
}

// urlWithDatabase works on the text. net/url would refuse or reorder things
// that pgx takes, such as several hosts.
func urlWithDatabase(dsn, database string) string {
	scheme, rest, _ := strings.Cut(dsn, "://")
	rest, query, _ := strings.Cut(rest, "?")
	authority, _, _ := strings.Cut(rest, "/")
	var kept []string
	for _, pair := range strings.Split(query, "&") {
		// In the query it would win over the path.
		if key, _, _ := strings.Cut(pair, "="); pair != "" && !isDatabaseKey(key) {
			kept = append(kept, pair)
		}
	}
	out := scheme + "://" + authority + "/" + escapePath(database)
	if len(kept) > 0 {
		out += "?" + strings.Join(kept, "&")
	}
	return out
}

// escapePath escapes every byte of a name that is not plainly harmless.
func escapePath(s string) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' {
			b.WriteByte(c)
		} else {
			b.Write([]byte{'%', hex[c>>4], hex[c&15]})
		}
	}
	return b.String()
}

// keywordsWithDatabase puts the new name first, as a value that is left empty
// at the end would swallow it, and takes the old one out.
func keywordsWithDatabase(dsn, database string) string {
	out := "dbname='" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(database) + "'"
	const space = " \t\n\r\v\f"
	for s := strings.Trim(dsn, space); s != ""; {
		eq := strings.IndexByte(s, '=')
		if eq < 0 {
			break // can't be: the string has been checked
		}
		key := strings.Trim(s[:eq], space)
		s = strings.TrimLeft(s[eq+1:], space)
		n := valueLen(s)
		if !isDatabaseKey(key) {
			out += " " + key + "=" + s[:n]
		}
		s = strings.TrimLeft(s[n:], space)
	}
	return out
}

// valueLen is the length of the value, quotes included, at the start of s.
func valueLen(s string) int {
	quoted := strings.HasPrefix(s, "'")
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\':
			i++
		case quoted && c == '\'' && i > 0:
			return i + 1
		case !quoted && strings.IndexByte(" \t\n\r\v\f", c) >= 0:
			return i
		}
	}
	return len(s)
}

// isDatabaseKey knows pgx's two names for it.
func isDatabaseKey(key string) bool { return key == "dbname" || key == "database" }
