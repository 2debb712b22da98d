package reach

import (
	"testing"

	"github.com/fencerow/fencerow/internal/localpg"
)

func TestMain(m *testing.M) { localpg.Main(m) }
