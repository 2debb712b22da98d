package localpg

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A server has PostgreSQL's defaults, but for what is listed with a reason, or
// else the hostile settings.
func TestSettings(t *testing.T) {
	const changed = `SELECT array_agg(name ORDER BY name) FROM pg_settings WHERE source = 'command line' AND setting IS DISTINCT FROM boot_val`
	t.Setenv(envHostile, "")
	plain := connect(t, StartServer(t).DSN(""))
	require.Subset(t, []string{"data_directory", "fsync", "listen_addresses", "log_timezone", "max_connections", "port", "shared_buffers", "TimeZone", "unix_socket_directories"},
		query[[]string](t, plain, changed))
	require.Equal(t, "on", query[string](t, plain, `SELECT current_setting('jit')`))

	t.Setenv(envHostile, "1")
	mean := connect(t, StartServer(t, WithSetting("plan_cache_mode", "auto")).DSN(""))
	require.Equal(t, "0", query[string](t, mean, `SELECT current_setting('jit_above_cost')`))
	require.Equal(t, "on", query[string](t, mean, `SELECT setting FROM pg_settings WHERE name IN ('force_parallel_mode', 'debug_parallel_query')`))
	require.Equal(t, "auto", query[string](t, mean, `SELECT current_setting('plan_cache_mode')`), "a test's own settings count")
}
