package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"bellwether/internal/config"
	"bellwether/internal/shell"
	"bellwether/internal/store"
)

func newData() *cobra.Command {
	return shell.Group(&cobra.Command{
		Use:   "data",
		Short: "check or print a data directory of Bellwether or of ZooKeeper; back up and restore a server",
	}, newDataBackup(), newDataCheck(), newDataDump(), newDataRestore())
}

// outputFlag is the flag that selects text or JSON.
type outputFlag struct{ output string }

// add adds the flag to a command, which then runs only if the value is valid.
func (f *outputFlag) add(c *cobra.Command) {
	c.Flags().StringVarP(&f.output, "output", "o", "text", "text or json")
	c.PreRunE = func(*cobra.Command, []string) error {
		if f.output != "text" && f.output != "json" {
			return shell.Usage(fmt.Errorf("--output %q: want text or json", f.output))
		}
		return nil
	}
}

func (f *outputFlag) json() bool { return f.output == "json" }

// dataFlags select the data directories and the form of the output.
type dataFlags struct {
	outputFlag
	config, logDir string
}

const checkLong = `Read a whole data directory without changing it, and report each damage with file and offset.

DIR is dataDir, the directory that contains version-2 (default ./bellwether-data). With --config, both directories are
those of a zoo.cfg. A note describes what a crash has left: the next start repairs it by itself. Damage is what no
crash causes. If the files are not damaged, the tree that they give is compared with the digests in the logs, which
show whether transactions are missing. That needs as much memory as the server. The last line says what a start would
do: recover everything up to a zxid, which is possible in spite of damage if older files are enough, or refuse to start.

Exit status: 0 sound, 1 damaged or in doubt, whatever a start would do.`

func newDataCheck() *cobra.Command {
	var f dataFlags
	c := &cobra.Command{
		Use:     "check [DIR]",
		Short:   "check a data directory and list all damage",
		Long:    checkLong,
		Example: "  bellwether data check /var/lib/zookeeper\n  bellwether data check --config zoo.cfg -o json",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := f.directories(args)
			if err != nil {
				return shell.Usage(err)
			}
			if _, err := os.Stat(filepath.Join(o.DataDir, "version-2")); err != nil {
				return fmt.Errorf("%s contains no directory version-2: give the path that dataDir has in zoo.cfg (%w)", o.DataDir, err)
			}
			bar := newReadBar("data check", f.json(), o.Files()...)
			r, err := store.Check(bar.fs(), o)
			if err != nil {
				bar.Close()
				return err
			}
			doubt := examineTree(bar.fs(), r)
			bar.Close()
			if f.json() {
				err = json.NewEncoder(cmd.OutOrStdout()).Encode(reportOf(r, doubt))
			} else {
				err = printReport(cmd.OutOrStdout(), r, doubt)
			}
			if err == nil && (len(r.Damage) > 0 || doubt != "") {
				return &shell.StatusError{Status: shell.ExitFailed}
			}
			return err
		},
	}
	c.Flags().StringVar(&f.config, "config", "", "zoo.cfg with the directories")
	c.Flags().StringVar(&f.logDir, "log-dir", "", "dataLogDir, if it differs from DIR")
	f.add(c)
	return c
}

// directories returns the directories that the flags and the argument name.
func (f *dataFlags) directories(args []string) (store.Options, error) {
	if f.config != "" {
		if len(args) > 0 || f.logDir != "" {
			return store.Options{}, errors.New("give --config or directories, not both")
		}
		c, err := loadConfig(f.config)
		if err != nil {
			return store.Options{}, err
		}
		return store.Options{DataDir: c.DataDir, LogDir: c.DataLogDir}, nil
	}
	dir := config.Default().DataDir
	if len(args) > 0 {
		dir = args[0]
	}
	return store.Options{DataDir: dir, LogDir: f.logDir}, nil
}

func printReport(w io.Writer, r *store.Report, doubt string) error {
	for _, s := range r.Snapshots {
		sound := "sound"
		if !s.Sound {
			sound = "not sound"
		}
		fmt.Fprintf(w, "%s: %s, %s\n", s.Path, shell.Count(s.Nodes, "znode"), sound)
	}
	for _, l := range r.Logs {
		if l.Records == 0 {
			fmt.Fprintf(w, "%s: no transactions\n", l.Path)
			continue
		}
		fmt.Fprintf(w, "%s: %s, %v to %v\n", l.Path, shell.Count(l.Records, "transaction"), l.First, l.Last)
	}
	for _, n := range r.Notes {
		fmt.Fprintf(w, "note: %s\n", n)
	}
	for _, d := range r.Damage {
		fmt.Fprintf(w, "damage: %v\n", d)
	}
	if doubt != "" {
		fmt.Fprintf(w, "doubt: %s\n", doubt)
	}
	_, err := fmt.Fprintln(w, verdict(r, doubt))
	return err
}

// verdict describes the damage, if there is any, and what a start would do.
func verdict(r *store.Report, doubt string) string {
	damaged := "damaged in " + shell.Count(len(r.Damage), "place")
	switch {
	case doubt != "":
		return fmt.Sprintf("undamaged, but the tree is in doubt; a start recovers everything up to %v", r.LastZxid)
	case len(r.Damage) == 0:
		return fmt.Sprintf("sound; a start recovers everything up to %v", r.LastZxid)
	case r.LastZxid < 0:
		return damaged + "; a start would be refused"
	}
	return fmt.Sprintf("%s; a start ignores the damaged files and recovers everything up to %v", damaged, r.LastZxid)
}

// checkJSON is a report in a form for programs.
type checkJSON struct {
	Sound     bool           `json:"sound"`
	LastZxid  string         `json:"last_zxid,omitempty"` // the last zxid that a start would recover
	Snapshots []snapshotJSON `json:"snapshots"`
	Logs      []logJSON      `json:"logs"`
	Damage    []damageJSON   `json:"damage"`
	Doubt     string         `json:"doubt,omitempty"` // why the tree that a start recovers may be the wrong one
	Notes     []string       `json:"notes"`
}

type snapshotJSON struct {
	Path  string `json:"path"`
	Zxid  string `json:"zxid"`
	Nodes int    `json:"nodes"`
	Sound bool   `json:"sound"`
}

type logJSON struct {
	Path    string `json:"path"`
	First   string `json:"first,omitempty"`
	Last    string `json:"last,omitempty"`
	Records int    `json:"records"`
	End     int64  `json:"end"`
}

type damageJSON struct {
	File   string `json:"file"`
	Offset int64  `json:"offset"`
	What   string `json:"what"`
	Do     string `json:"do"`
}

func reportOf(r *store.Report, doubt string) checkJSON {
	out := checkJSON{
		Sound: len(r.Damage) == 0 && doubt == "", Snapshots: []snapshotJSON{}, Logs: []logJSON{}, Damage: []damageJSON{},
		Notes: append([]string{}, r.Notes...), Doubt: doubt,
	}
	if r.LastZxid >= 0 {
		out.LastZxid = r.LastZxid.String()
	}
	for _, s := range r.Snapshots {
		out.Snapshots = append(out.Snapshots, snapshotJSON{s.Path, s.Zxid.String(), s.Nodes, s.Sound})
	}
	for _, l := range r.Logs {
		j := logJSON{Path: l.Path, Records: l.Records, End: l.End}
		if l.Records > 0 {
			j.First, j.Last = l.First.String(), l.Last.String()
		}
		out.Logs = append(out.Logs, j)
	}
	for _, d := range r.Damage {
		out.Damage = append(out.Damage, damageJSON{d.File, d.Offset, d.What, d.Do})
	}
	return out
}
