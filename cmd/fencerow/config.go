package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/fencerow/fencerow/rewrite"
)

const configName = "fencerow.yaml"

// config is fencerow.yaml.
type config struct {
	Tables     []tableConfig `yaml:"tables"`
	Exclude    []string      `yaml:"exclude"`
	Migrations []string      `yaml:"migrations"`

	path  string // of the file, "" if there is none
	lines []int  // of the tables
}

type tableConfig struct {
	Name        string `yaml:"name"`
	Mode        string `yaml:"mode"`
	TokenColumn string `yaml:"token_column"`
	Resource    string `yaml:"resource"`
}

// loadConfig reads the file that is named or, if none is, the nearest one from
// the working directory upwards. There need not be one.
func loadConfig(path string) (*config, error) {
	if path == "" {
		var err error
		if path, err = findConfig(); err != nil || path == "" {
			return &config{}, err
		}
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the configuration: %w", err)
	}
	c, err := parseConfig(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	c.path = path
	return c, nil
}

func findConfig() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		path := filepath.Join(dir, configName)
		_, err := os.Stat(path)
		if err == nil {
			return path, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("look for the configuration: %w", err)
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", nil
		}
		dir = parent
	}
}

func parseConfig(data []byte) (*config, error) {
	c := &config{}
	d := yaml.NewDecoder(bytes.NewReader(data))
	d.KnownFields(true)
	if err := d.Decode(c); err != nil && !errors.Is(err, io.EOF) {
		return nil, yamlError(err)
	}
	if err := d.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is more than one document: keep the first")
	}
	var root yaml.Node
	if err := yaml.Unmarshal(data, &root); err != nil {
		return nil, yamlError(err)
	}
	c.lines = tableLines(&root)
	for i, t := range c.Tables {
		if _, err := t.table(); err != nil {
			return nil, fmt.Errorf("line %d: %w", c.lines[i], err)
		}
	}
	return c, nil
}

// tableLines returns the lines at which the tables begin.
func tableLines(root *yaml.Node) []int {
	var lines []int
	if len(root.Content) == 0 {
		return nil
	}
	for i, key := range root.Content[0].Content {
		if i%2 == 0 && key.Value == "tables" {
			for _, t := range root.Content[0].Content[i+1].Content {
				lines = append(lines, t.Line)
			}
		}
	}
	return lines
}

var unknownField = regexp.MustCompile(`field (\S+) not found in type main\.(\w+)`)

// keys lists what may be written where.
var keys = map[string]string{"config": "tables, exclude and migrations", "tableConfig": "name, mode, token_column and resource"}

// yamlError says an error of the decoder in the file's words.
func yamlError(err error) error {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	text = strings.TrimPrefix(text, "unmarshal errors:\n")
	var lines []string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if m := unknownField.FindStringSubmatch(line); m != nil {
			line = strings.Replace(line, m[0], fmt.Sprintf("unknown key %q: the keys here are %s", m[1], keys[m[2]]), 1)
		}
		lines = append(lines, strings.NewReplacer("main.tableConfig", "a table", "main.config", "the configuration").Replace(line))
	}
	return errors.New(strings.Join(lines, "; "))
}

// table is the protected table that is meant.
func (t tableConfig) table() (rewrite.Table, error) {
	schema, name, err := splitName(t.Name)
	if err != nil {
		return rewrite.Table{}, err
	}
	if t.Mode == "" {
		return rewrite.Table{}, fmt.Errorf("table %q has no mode: choose strict (one write per token and row) or lease (a holder writes as often as it likes)", t.Name)
	}
	mode, err := rewrite.ParseMode(t.Mode)
	if err != nil {
		return rewrite.Table{}, fmt.Errorf("table %q: %w", t.Name, err)
	}
	return rewrite.Table{Schema: schema, Name: name, TokenColumn: t.TokenColumn, Mode: mode, Resource: t.Resource}, nil
}

var namePart = regexp.MustCompile(`^(?:"((?:[^"]|"")+)"|([A-Za-z_\x80-\xff][A-Za-z_0-9$\x80-\xff]*))`)

// splitName reads a name as SQL writes it: orders, app.orders, "Orders".
func splitName(text string) (schema, name string, err error) {
	var parts []string
	for rest := text; ; {
		m := namePart.FindStringSubmatch(rest)
		if m == nil || len(parts) == 2 {
			return "", "", fmt.Errorf(`%q is not the name of a table: write it as in SQL, orders or app.orders, or '"Order Items"' with its quotes`, text)
		}
		part := strings.ReplaceAll(m[1], `""`, `"`)
		if m[2] != "" {
			part = strings.ToLower(m[2])
		}
		parts = append(parts, part)
		if rest = rest[len(m[0]):]; rest == "" {
			break
		}
		if rest[0] == '.' {
			rest = rest[1:]
		} else {
			rest = "." // no part begins with it
		}
	}
	if len(parts) == 1 {
		return "", parts[0], nil
	}
	return parts[0], parts[1], nil
}
