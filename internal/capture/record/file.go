package record

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
)

// Encode returns the statements as JSON lines.
func (s *Session) Encode() ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // SQL is full of < and >
	for _, statement := range s.rec.sorted() {
		if err := enc.Encode(statement); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}

// Write writes the statements to the library's file in dir.
func (s *Session) Write(dir string) error {
	data, err := s.Encode()
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, s.rec.library+".jsonl"), data, 0o644)
}
