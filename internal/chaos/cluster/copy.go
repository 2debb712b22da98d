package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Of these directories a backup has nothing but the directory, and these files
// it leaves out: see "Making a Base Backup Using the Low Level API".
var (
	emptied = []string{"pg_wal", "pg_replslot", "pg_dynshmem", "pg_notify", "pg_serial", "pg_snapshots", "pg_stat_tmp", "pg_subtrans"}
	left    = []string{
		"postmaster.pid", "postmaster.opts", "postgresql.auto.conf", "postgresql.auto.conf.tmp", "standby.signal",
		"recovery.signal", "backup_label", "tablespace_map", "backup_manifest", "pg_internal.init",
	}
)

// control changes all the time, and is needed whole.
var control = filepath.Join("global", "pg_control")

// copyData copies the data directory of a server that runs. What changes
// meanwhile, and what ends up torn, recovery writes again.
func copyData(ctx context.Context, from, to string) error {
	err := filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if path == from {
			return err
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		rel, relErr := filepath.Rel(from, path)
		if err := errors.Join(err, relErr, context.Cause(ctx)); err != nil {
			return err
		}
		switch {
		case e.IsDir() && (strings.HasPrefix(e.Name(), "pgsql_tmp") || slices.Contains(emptied, filepath.Dir(rel))):
			return fs.SkipDir
		case e.IsDir():
			return os.Mkdir(filepath.Join(to, rel), 0o700)
		case !e.Type().IsRegular():
			return fmt.Errorf("%s is no ordinary file: keep tablespaces out of the setup", rel)
		case !wanted(rel):
			return nil
		}
		return copyFile(path, filepath.Join(to, rel))
	})
	if err != nil {
		return err
	}
	return copyControl(filepath.Join(from, control), filepath.Join(to, control))
}

// wanted says whether a file is part of a backup.
func wanted(rel string) bool {
	top, _, _ := strings.Cut(filepath.ToSlash(rel), "/")
	history := top == "pg_wal" && filepath.Ext(rel) == ".history"
	return rel != control && !slices.Contains(left, filepath.Base(rel)) && (history || !slices.Contains(emptied, top))
}

// copyFile copies a file, if it is still there.
func copyFile(from, to string) error {
	src, err := os.Open(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(dst, src)
	return errors.Join(err, dst.Close())
}

// copyControl reads until it has read the same twice.
func copyControl(from, to string) error {
	var last []byte
	for {
		content, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		if bytes.Equal(content, last) {
			return os.WriteFile(to, content, 0o600)
		}
		last = content
	}
}
