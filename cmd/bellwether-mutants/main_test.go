package main

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain lets the test binary also act as the program, when it is started under the program's name.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"bellwether-mutants": main})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{Dir: "testdata", RequireExplicitExec: true, RequireUniqueNames: true})
}
