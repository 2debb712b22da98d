package check

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPlainPlaceholders(t *testing.T) {
	for name, test := range map[string]struct {
		sql   string
		plain bool
	}{
		"placeholders":                 {`SELECT $1, a.b = $2`, true},
		"a regular expression":         {`SELECT regexp_replace(s, '\s+', ' ') FROM t WHERE id = $1`, true},
		"a dollar in a string":         {`SELECT s ~ '^new$', 'US$', $1`, true},
		"a path":                       {`SELECT jsonb_path_query('{"a":1}', '$.a'), $1::int`, true},
		"a quote in the string":        {`SELECT 'it''s \', $1`, true},
		"a quoted name":                {`SELECT "a$b\", $1`, true},
		"a comment":                    {"SELECT $1 -- it's $9 \\ \n, $2 /* $x ' \\ */", true},
		"a dollar-quoted string":       {`SELECT $$ it's \ $1 $$, $a$ $$ $a$, $1`, true},
		"an escape string":             {`SELECT E'\n', $1`, false},
		"a lower one":                  {`SELECT e'\'', $1`, false},
		"an escape string, continued":  {"SELECT E'a'\n'b\\' || $1 ' -- '", false},
		"a string, continued":          {"SELECT 'a'\n'b\\', $1", false},
		"a string behind a name":       {`SELECT name'a\', '$1 ' -- '`, false},
		"a unicode string":             {`SELECT U&'\0041', $1`, false},
		"a unicode name":               {`SELECT U&"\0041", $1`, false},
		"a national string":            {`SELECT n'a\', $1`, false},
		"a dollar in a name":           {`SELECT 1 AS a$$, 'b$$ $1 ' -- '`, false},
		"a placeholder in a name":      {`SELECT a$1`, false},
		"a dollar-quote in a name":     {`SELECT a$b$ '$b$`, false},
		"a lone dollar":                {`SELECT $`, false},
		"a placeholder behind a digit": {`SELECT 1$1`, false},
		"an unterminated string":       {`SELECT '\`, false},
		"NUL":                          {"SELECT '\\' \x00", false},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, test.plain, PlainPlaceholders(test.sql)) })
	}
}
