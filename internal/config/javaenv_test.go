package config

import (
	"strings"
	"testing"
)

// TestJVMFlags shows how the flags are composed from the environment and the file
// java.env.
func TestJVMFlags(t *testing.T) {
	cases := []struct {
		name, file string
		env        map[string]string
		want       string
	}{
		{"nothing", "", nil, ""},
		{"environment", "", map[string]string{"JVMFLAGS": "-Db=1", "SERVER_JVMFLAGS": "-Da=1"}, "-Da=1 -Db=1"},
		{"autocreate", "", map[string]string{"ZOO_DATADIR_AUTOCREATE_DISABLE": "1"}, "-Dzookeeper.datadir.autocreate=false"},
		{"file", "# comment\nexport JVMFLAGS=\"-Dx=1 $JVMFLAGS\"\n", map[string]string{"JVMFLAGS": "-Dy=2"}, "-Dx=1 -Dy=2"},
		{"quotes", `A='$x y' B="${A}z"` + "\nJVMFLAGS=\"$A\"-'b'\\ c$\\$ # comment", nil, "$x y-b c$$"},
		{"braces", "A=1\nJVMFLAGS=${A}2${A ${9}$A3$", nil, "12${A"},
		{"continued", "JVMFLAGS=\"-Da=1 \\\n-Db=2\"", nil, "-Da=1 -Db=2"},
		{"other lines", "if [ x = y ]; then\n  9A=1\n  JVMFLAGS=-Da=1; echo\nfi\n", nil, "-Da=1"},
	}
	for _, x := range cases {
		t.Run(x.name, func(t *testing.T) {
			var files []string
			if x.file != "" {
				files = []string{"java.env", x.file}
			}
			got, err := JVMFlags(write(t, "", files...), x.env)
			if err != nil || got != x.want {
				t.Errorf("got %q, %v; want %q", got, err, x.want)
			}
		})
	}
	if _, err := JVMFlags(write(t, "", "java.env/x", ""), nil); err == nil || !strings.Contains(err.Error(), "environment file") {
		t.Errorf("java.env is a directory: %v", err)
	}
}
