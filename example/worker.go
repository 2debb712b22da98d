//go:build unix

package main

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // registers "pgx"
)

// The environment makes this program a worker. The connection string may hold
// a password, so it is no argument, which everybody on the machine can read.
const (
	envWorker = "FENCEROW_EXAMPLE_WORKER" // its name
	envDSN    = "FENCEROW_EXAMPLE_DSN"
	envUnsafe = "FENCEROW_EXAMPLE_UNSAFE" // set: without fencing
)

// What a worker tells the scheduler, on a line of standard output each.
const (
	eventListening = "listening" // and the address
	eventComputing = "computing" // and the value it has read
)

// serve is the main function of a worker: an HTTP server over one database.
func serve(name string) error {
	proceed := make(chan struct{}, 1)
	go followParent(proceed)

	// compute ends when the scheduler says so. That is the one piece of
	// direction: it makes the pause hit each run at the same point.
	compute := func(ctx context.Context, old string) (string, error) {
		fmt.Println(eventComputing, old)
		select {
		case <-proceed:
			return "written by " + name, nil
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}

	driverName := "fencerow"
	if os.Getenv(envUnsafe) != "" {
		driverName = "pgx"
	}
	db, err := sql.Open(driverName, os.Getenv(envDSN))
	if err != nil {
		return err
	}
	defer db.Close()
	handler := (&rows{db, compute}).routes()
	if driverName == "pgx" {
		handler = (&unsafeRows{db, compute}).routes()
	}

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(eventListening, listener.Addr())
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	return server.Serve(listener)
}

// followParent takes the scheduler's go-aheads from standard input, and ends
// the process when the scheduler is gone, however it died.
func followParent(proceed chan<- struct{}) {
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		proceed <- struct{}{}
	}
	os.Exit(0)
}
