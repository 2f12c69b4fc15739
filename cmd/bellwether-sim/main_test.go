package main

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain: the test binary is the program too, when it is started under its name.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"bellwether-sim": main})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{Dir: "testdata", RequireExplicitExec: true, RequireUniqueNames: true})
}
