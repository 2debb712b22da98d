package localpg

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// CreateDatabase creates a database as a copy of the template, to which nobody
// may be connected. Without a template it is an empty UTF8 database with the C
// locale, whatever the server's own defaults are.
func (s *Server) CreateDatabase(ctx context.Context, name, template string) error {
	sql := "CREATE DATABASE " + quoteName(name)
	if template == "" {
		sql += " TEMPLATE template0 ENCODING 'UTF8' LC_COLLATE 'C' LC_CTYPE 'C'"
	} else {
		sql += " TEMPLATE " + quoteName(template)
	}
	if s.major >= 15 {
		// The default goes through the WAL, which costs more than twice the time for a
		// database as small as these.
		sql += " STRATEGY file_copy"
	}
	err := s.admin(ctx, func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, sql)
		return err
	})
	if err != nil {
		return fmt.Errorf("create database %q: %w", name, err)
	}
	s.createdMu.Lock()
	defer s.createdMu.Unlock()
	if s.created == nil {
		s.created = make(map[string]bool)
	}
	s.created[name] = true
	return nil
}

// DropDatabase drops a database, and the connections to it. It is no error if
// there is none of that name.
func (s *Server) DropDatabase(ctx context.Context, name string) error {
	err := s.admin(ctx, func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "DROP DATABASE IF EXISTS "+quoteName(name)+" WITH (FORCE)")
		return err
	})
	if err != nil {
		return fmt.Errorf("drop database %q: %w", name, err)
	}
	s.createdMu.Lock()
	defer s.createdMu.Unlock()
	delete(s.created, name)
	return nil
}

// dropCreated leaves an existing server as it was.
func (s *Server) dropCreated() error {
	s.createdMu.Lock()
	var names []string
	for name := range s.created {
		names = append(names, name)
	}
	s.createdMu.Unlock()
	slices.Sort(names)

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var errs []error
	for _, name := range names {
		errs = append(errs, s.DropDatabase(ctx, name))
	}
	return errors.Join(errs...)
}

// seal lets nobody connect to a database any more, so that it can be copied at
// any time, and ends the connections that its setup has left open.
func (s *Server) seal(ctx context.Context, name string) error {
	return s.admin(ctx, func(conn *pgx.Conn) error {
		if _, err := conn.Exec(ctx, "ALTER DATABASE "+quoteName(name)+" ALLOW_CONNECTIONS false"); err != nil {
			return err
		}
		_, err := conn.Exec(ctx, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1 AND usename = current_user", name)
		return err
	})
}

func quoteName(name string) string { return pgx.Identifier{name}.Sanitize() }
