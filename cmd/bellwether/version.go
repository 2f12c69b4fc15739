package main

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"
)

// release is the version of this program. A distribution that builds a package can set another one with -ldflags
// "-X main.release=…".
var release = "0.1.0"

// zookeeperRelease is the version of Apache ZooKeeper that this program behaves like.
const zookeeperRelease = "3.9.5"

// zookeeperVersion returns the version line of srvr and similar words, in the form that tools parse: VERSION,
// built on DATE.
func zookeeperVersion() string {
	return fmt.Sprintf("%s-bellwether-%s, built on %s", zookeeperRelease, release, builtOn().UTC().Format("2006-01-02 15:04 MST"))
}

// builtOn returns the time of the commit, or the time of the binary if the commit is
// unknown.
func builtOn() time.Time {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if t, err := time.Parse(time.RFC3339, s.Value); s.Key == "vcs.time" && err == nil {
				return t
			}
		}
	}
	if exe, err := os.Executable(); err == nil {
		if fi, err := os.Stat(exe); err == nil {
			return fi.ModTime()
		}
	}
	return time.Unix(0, 0)
}

// versionJSON is the output of the command version in a form for programs.
type versionJSON struct {
	Version   string `json:"version"`
	ZooKeeper string `json:"zookeeper"` // the line that srvr prints
	Go        string `json:"go"`
	OS        string `json:"os"`
	Arch      string `json:"arch"`
}

func newVersion() *cobra.Command {
	var f outputFlag
	c := &cobra.Command{
		Use:   "version",
		Short: "print the version of this program",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			v := versionJSON{release, zookeeperVersion(), runtime.Version(), runtime.GOOS, runtime.GOARCH}
			if f.json() {
				return json.NewEncoder(cmd.OutOrStdout()).Encode(v)
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "bellwether %s (ZooKeeper %s) %s %s/%s\n", v.Version, v.ZooKeeper, v.Go, v.OS, v.Arch)
			return err
		},
	}
	f.add(c)
	return c
}
