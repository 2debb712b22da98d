package localpg

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"time"

	embedded "github.com/fergusstrange/embedded-postgres"
)

// downloadVersion is the server that is downloaded where none is installed.
const downloadVersion = embedded.V18

// downloadTimeout leaves go test's ten minutes some room.
const downloadTimeout = 3 * time.Minute

// cacheDir is where downloaded binaries are kept, or "" if there is no place.
// Root's home is closed to the user the server runs as.
func cacheDir() string {
	if os.Geteuid() == 0 {
		return "/var/cache/fencerow"
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "fencerow")
}

// download returns the bin directory of a server in the cache, and fetches it
// first if it isn't there.
func (f finder) download(ctx context.Context) (string, error) {
	name := fmt.Sprintf("postgres-%s-%s-%s", downloadVersion, runtime.GOOS, runtime.GOARCH)
	return cached(ctx, f.cache, name, fetch)
}

// Cached returns the bin directory of the server of that name in the cache of
// downloads. If it isn't there, fetch makes it: home, with a directory bin, is
// to appear complete or not at all, by a rename of what was made beside it in
// cache.
func Cached(ctx context.Context, name string, fetch func(ctx context.Context, cache, home string) error) (string, error) {
	return cached(ctx, cacheDir(), name, fetch)
}

// cached is Cached with the place of the cache. Processes that run side by side
// fetch a server once.
func cached(ctx context.Context, cache, name string, fetch func(ctx context.Context, cache, home string) error) (string, error) {
	if cache == "" {
		return "", errors.New("there is no cache directory: set HOME")
	}
	ctx, cancel := context.WithTimeout(ctx, downloadTimeout)
	defer cancel()

	home := filepath.Join(cache, name)
	bin := filepath.Join(home, "bin")
	if isBinDir(bin) {
		return bin, nil
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", fmt.Errorf("make the cache directory: %w", err)
	}
	if os.Geteuid() == 0 { // the server runs as another user, whatever our umask
		if err := os.Chmod(cache, 0o755); err != nil {
			return "", fmt.Errorf("open the cache directory to the server's user: %w", err)
		}
	}
	lock, err := waitLock(ctx, filepath.Join(cache, "lock"))
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if isBinDir(bin) { // another process was faster
		return bin, nil
	}
	if err := fetch(ctx, cache, home); err != nil {
		return "", err
	}
	return bin, nil
}

// waitLock takes the lock as soon as its holder is done.
func waitLock(ctx context.Context, path string) (*os.File, error) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		lock, err := openLock(path, true)
		if !errors.Is(err, errLocked) {
			return lock, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for another process that downloads to %s: %w", filepath.Dir(path), context.Cause(ctx))
		}
	}
}

// fetch unpacks a server into a directory beside home, and gives it its name
// when it is complete.
func fetch(ctx context.Context, cache, home string) error {
	staging, err := os.MkdirTemp(cache, "new-")
	if err != nil {
		return fmt.Errorf("make a directory for the download: %w", err)
	}
	unpacked := filepath.Join(staging, "pg")
	done := make(chan error, 1)
	go func() {
		// The library can't be cancelled. It cleans up when it is through.
		defer os.RemoveAll(staging)
		err := unpack(staging, unpacked)
		if ctx.Err() == nil && isBinDir(filepath.Join(unpacked, "bin")) {
			_ = os.RemoveAll(home) // damaged, or we would not be here
			err = os.Rename(unpacked, home)
		}
		done <- err
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("download PostgreSQL: %w", context.Cause(ctx))
	}
}

// unpack has embedded-postgres fetch and unpack its archive into dir. It
// always returns an error, of use only if dir has no server afterwards: the
// library does this as the first step of starting a server of its own, on a
// TCP port and not as root, so it is given a data directory that can't exist
// and stops there.
func unpack(staging, dir string) error {
	port, err := freePort()
	if err != nil {
		return err
	}
	config := embedded.DefaultConfig().
		Version(downloadVersion).
		Port(uint32(port)).
		CachePath(filepath.Join(staging, "archive")).
		RuntimePath(filepath.Join(staging, "run")).
		BinariesPath(dir).
		DataPath("\x00").
		Logger(io.Discard)
	if url := os.Getenv(envRepository); url != "" {
		config = config.BinaryRepositoryURL(url)
	}
	defer http.DefaultClient.CloseIdleConnections() // the library's
	err = embedded.NewDatabase(config).Start()
	if _, statErr := os.Stat(dir); statErr == nil {
		return fmt.Errorf("the downloaded archive has no initdb and postgres, or was not unpacked to the end: %w", err)
	}
	return err
}

// freePort returns a TCP port of the loopback interface that nobody listens on.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
