package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"strings"
	"text/template"
)

// leaseLockSeed is, with the name of a lease, the key of the advisory lock that
// its writers share and that who takes the lease has alone; docs/seal.md has the
// number, too.
const leaseLockSeed = 1717923427

// variant is for which table the body of a trigger function is made. What stays
// for format() to put in when a wall is put up is, by its number: the token column,
// the mode, the resource, the name of the setting and the sequence; for a seal the
// token column, the resource, the name of the setting, the lease, the column that
// names the lease and its type.
type variant struct {
	Strict, Lease bool   // the table's mode
	Bounded       bool   // a sequence issues the tokens
	Attested      bool   // the wall's level
	ByColumn      bool   // a column names the lease
	Row           string // NEW or OLD, see On
}

// set sets what is written in a source as a word.
func (v *variant) set(word string) error {
	switch word {
	case "strict":
		v.Strict = true
	case "lease":
		v.Lease = true
	case "bounded":
		v.Bounded = true
	case "attested":
		v.Attested = true
	case "by column":
		v.ByColumn = true
	default:
		return fmt.Errorf("unknown word %q for the body of a trigger function", word)
	}
	return nil
}

// On is the variant for a part that looks at the row NEW or OLD.
func (v variant) On(row string) variant {
	v.Row = row
	return v
}

// IsIssued is the condition that the sequence has issued a token.
func (v variant) IsIssued(token string) string {
	if !v.Bounded {
		return "true"
	}
	return token + " OPERATOR(pg_catalog.<=) pg_catalog.pg_sequence_last_value(%5$L::pg_catalog.regclass)"
}

// Newer is the operator by which a token must be newer than the row's.
func (v variant) Newer() string {
	if v.Strict {
		return "OPERATOR(pg_catalog.>)"
	}
	return "OPERATOR(pg_catalog.>=)"
}

// sourceTemplates has the templates of trigger bodies. Each source is a template,
// too, in which
//
//	{{body "update_strict" "bounded" "attested"}}
//
// is the body that triggers/update_strict.sql.tmpl makes for such tables, and
// {{manifest}} the manifest.
func sourceTemplates(sources fs.FS, manifest string) (*template.Template, error) {
	templates := template.New("sources").Option("missingkey=error")
	templates.Funcs(template.FuncMap{
		"body": func(name string, words ...string) (string, error) {
			var v variant
			for _, word := range words {
				if err := v.set(word); err != nil {
					return "", err
				}
			}
			var b bytes.Buffer
			err := templates.ExecuteTemplate(&b, name+".sql.tmpl", v)
			return "\n" + strings.TrimSpace(b.String()) + " ", err
		},
		"manifest": func() string { return manifest },
		"fail": func(reason, token, rowToken string) string {
			return fmt.Sprintf("PERFORM fencing.fail('%s', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %%1$L, %%2$L, %%3$L, %s, %s)", reason, token, rowToken)
		},
		"sealFail": func(reason string) string {
			return fmt.Sprintf("PERFORM fencing.seal_fail('%s', TG_ARGV[0], TG_RELID, TG_OP, TG_NAME, %%1$L, %%2$L, v_lease, %%5$L, v_token, v_epoch, v_row_token)", reason)
		},
		"keyDigest": func(key string) string {
			return fmt.Sprintf("sha256(%s)", encode(key))
		},
		// what tells the trigger functions of tables that are registered differently from each other
		"nameDigest": func(arguments string) string {
			return fmt.Sprintf("left(md5(%s), 16)", encode("jsonb_build_array("+arguments+")"))
		},
		"leaseLockKey": func(lease string) string {
			return fmt.Sprintf("pg_catalog.hashtextextended(%s, %d)", lease, leaseLockSeed)
		},
	})
	return templates.ParseFS(sources, "triggers/*.sql.tmpl")
}

// encode gives the bytes of a value, which must not depend on the encoding of
// the database: a dump may be restored into another one. Two encodings have no
// other form.
func encode(value string) string {
	return fmt.Sprintf("convert_to(%s::text, CASE WHEN getdatabaseencoding() IN ('SQL_ASCII', 'MULE_INTERNAL') THEN getdatabaseencoding() ELSE 'UTF8' END)", value)
}

// expand returns the text of a source.
func expand(templates *template.Template, name, source string) (string, error) {
	t, err := templates.New(name).Parse(source)
	if err != nil {
		return "", err
	}
	var b bytes.Buffer
	if err := t.Execute(&b, nil); err != nil {
		return "", err
	}
	return b.String(), nil
}
