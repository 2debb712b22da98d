// Package worker is a process of the chaos test: clients that contend for
// leases, write, insert and read through fencerow, and say on standard output
// what they ask for and what they are told.
//
// A program that may be started as a worker begins with
//
//	worker.MainIfAsked()
//
// and starts itself again with the environment of [Config.Env].
package worker

import (
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/fencerow/fencerow/internal/chaos/history"
)

// env is the variable that makes a process a worker.
const env = "FENCEROW_CHAOS_WORKER"

// Write is how a worker writes.
type Write string

// The ways to write.
const (
	Guarded Write = "guarded" // through fencerow
	Report  Write = "report"  // through fencerow at level report, without a guard
	Plain   Write = "plain"   // through pgx, without a guard
)

// Config is what a worker is told.
type Config struct {
	DSN       string
	Write     Write
	Seed      uint64
	Worker    int // from 1
	Life      int // counts the workers that had this place before, from 1
	Resources int
	Rows      int // of a resource in use at a time
	Rotate    time.Duration
	Rotations int // the rows that exist
	Start     history.Clock
	TTL       time.Duration
	Timeout   time.Duration // of an operation
}

// Env is the environment of a worker.
func (c Config) Env() []string {
	b, err := json.Marshal(c)
	if err != nil {
		panic(err) // it has plain fields only
	}
	return append(os.Environ(), env+"="+string(b))
}

// MainIfAsked runs the worker and doesn't return, if this process is to be one.
func MainIfAsked() {
	s, ok := os.LookupEnv(env)
	if !ok {
		return
	}
	var c Config
	err := json.Unmarshal([]byte(s), &c)
	if err == nil {
		err = run(c)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "worker %d: %v\n", c.Worker, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Resource is the name of a resource, from 1.
func Resource(n int) string { return fmt.Sprintf("r%d", n) }

// Hot is the resource that is taken and released at once, by many.
const Hot = "hot"

// The numbers of rows.
const (
	perRotation = 10_000
	perResource = 100
	strictRows  = 9_000 // as the rows of a resource
)

// RowNumbers are the numbers of all rows of a table.
func (c Config) RowNumbers(strict bool) []int64 {
	var all []int64
	for r := range c.Rotations {
		if strict {
			all = append(all, c.rows(r, 0)...)
			continue
		}
		for resource := range c.Resources {
			all = append(all, c.rows(r, 1+resource)...)
		}
	}
	return all
}

// RowsOf are the numbers of all rows of a resource, from 1.
func (c Config) RowsOf(resource int) (all []int64) {
	for r := range c.Rotations {
		all = append(all, c.rows(r, resource)...)
	}
	return all
}

// rows are those of a resource in a rotation; resource 0 stands for the table
// in mode strict.
func (c Config) rows(rotation, resource int) []int64 {
	first := perRotation*(1+rotation) + perResource*resource
	if resource == 0 {
		first += strictRows
	}
	rows := make([]int64, c.Rows)
	for i := range rows {
		rows[i] = int64(first + i)
	}
	return rows
}
