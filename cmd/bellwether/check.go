package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"bellwether/internal/admin/web"
	"bellwether/internal/config"
	"bellwether/internal/ensemble"
	"bellwether/internal/server"
	"bellwether/internal/shell"
)

// check prints what a server with this configuration would do, and fails if a start would fail. A port or a
// folder that another process uses at the moment is not a failure: that process is often the server that is to be
// restarted.
func check(w io.Writer, c *config.Config) error {
	var refused []error
	for _, dir := range slices.Compact([]string{c.DataDir, c.DataLogDir}) {
		refused = append(refused, tryDir(filepath.Join(dir, "version-2"), c.Storage.AutocreateDir))
	}
	soon, err := server.TryFiles(c)
	for _, text := range soon {
		c.Warnings = append(c.Warnings, config.Notice{Text: text})
	}
	if text := fileSizeWarning(c); text != "" {
		c.Warnings = append(c.Warnings, config.Notice{Text: text})
	}
	stale, unsaved := tryMemberFiles(c)
	refused = append(refused, err, unsaved, server.TryClientPorts(c), tryMetricsPort(c), web.Check(c), trySamePorts(c))
	c.Warnings = append(c.Warnings, stale...)
	c.Warnings = append(c.Warnings, tryQuorumPorts(c)...)
	for _, r := range remarks(c) {
		fmt.Fprintln(w, r)
	}
	if err := errors.Join(refused...); err != nil {
		return err
	}
	return printCheck(w, c)
}

// tryDir returns an error if a start could neither write into a data directory nor create it.
func tryDir(dir string, autocreate bool) error {
	there := dir
	info, err := os.Stat(there)
	for errors.Is(err, fs.ErrNotExist) && there != filepath.Dir(there) {
		there = filepath.Dir(there)
		info, err = os.Stat(there)
	}
	switch {
	case err == nil && !info.IsDir():
		err = &fs.PathError{Op: "mkdir", Path: there, Err: syscall.ENOTDIR}
	case err == nil && there != dir && !autocreate:
		return fmt.Errorf("%s is missing, and zookeeper.datadir.autocreate is false; create the directory, or set the key to true", dir)
	case err == nil:
		err = tryWrite(there)
	}
	if err != nil {
		return fmt.Errorf("data directory %s cannot be created or written: %w; choose one that this user can write", dir, err)
	}
	return nil
}

// tryMemberFiles checks whether a server whose membership can change could write its files: the dynamic files and the backup
// beside zoo.cfg, and zoo.cfg, which may be a symbolic link to a file elsewhere. A start fails only if it cannot write
// the backup, which it needs if zoo.cfg has the server lines. Otherwise the server runs, and its files become stale.
func tryMemberFiles(c *config.Config) (stale []config.Notice, err error) {
	if c.File == "" || c.Standalone() || !c.Tree.Reconfig {
		return nil, nil
	}
	file, err := filepath.Abs(c.File)
	if err != nil {
		return nil, err
	}
	beside, err := filepath.EvalSymlinks(filepath.Dir(file))
	if err != nil {
		return nil, err
	}
	target, err := filepath.EvalSymlinks(file)
	if err != nil {
		return nil, err
	}
	for i, dir := range slices.Compact([]string{beside, filepath.Dir(target)}) {
		err := tryWrite(dir)
		switch {
		case err == nil:
		case i == 0 && c.Ensemble.DynamicFile == "":
			return nil, fmt.Errorf("reconfigEnabled=true needs a directory of zoo.cfg that can be written: %w; make it writable, or set reconfigEnabled=false", err)
		default:
			stale = append(stale, config.Notice{File: c.File, Key: "reconfigEnabled",
				Text: fmt.Sprintf("lets the membership change, but its files could not be written, so that only the log would have it: %v; make the directory writable", err)})
		}
	}
	return stale, nil
}

// tryWrite creates a directory in another one and removes it.
func tryWrite(dir string) error {
	made, err := os.MkdirTemp(dir, "bellwether-check-")
	if p := (*fs.PathError)(nil); errors.As(err, &p) {
		return &fs.PathError{Op: "write to", Path: dir, Err: p.Err}
	}
	if err != nil {
		return err
	}
	return os.Remove(made)
}

// tryQuorumPorts checks whether this machine has the addresses in the server's own line. A start without them
// would continue and try again later.
func tryQuorumPorts(c *config.Config) []config.Notice {
	if c.Standalone() || c.Ensemble.ListenOnAllIPs {
		return nil
	}
	self, _ := c.Ensemble.Members.Server(c.Ensemble.ID)
	var found []config.Notice
	for _, a := range self.Addresses {
		if (ensemble.HostPort{Host: a.Host}).IsWildcard() {
			continue
		}
		ln, err := net.Listen("tcp", net.JoinHostPort(a.Host, "0"))
		if err == nil {
			ln.Close()
			continue
		}
		found = append(found, config.Notice{File: c.File, Key: "server." + strconv.FormatInt(int64(self.ID), 10),
			Text: fmt.Sprintf("has the address %s, on which this machine cannot listen now; the server will try again until it can: %v", a.Host, err)})
	}
	return found
}

// printCheck prints what a server with this configuration would do.
func printCheck(w io.Writer, c *config.Config) error {
	fmt.Fprintf(w, "%s, snapshots in %s, logs in %s, tick %v, session timeouts %v to %v\n",
		clientText(c), c.DataDir, c.DataLogDir, c.TickTime, c.MinSessionTimeout, c.MaxSessionTimeout)
	if m := c.Ensemble.Members; !c.Standalone() {
		self, _ := m.Server(c.Ensemble.ID)
		voters := len(m.Voters())
		fmt.Fprintf(w, "member of an ensemble of %s and %s, by myid %s\n",
			shell.Count(voters, "voter"), shell.Count(len(m.Servers())-voters, "observer"), self.Line())
	}
	if a := &c.Admin; a.Enabled {
		fmt.Fprintf(w, "admin server at %v with the commands at %s\n", a.Address, a.CommandURL)
	}
	_, err := fmt.Fprintf(w, "the configuration is good, with %s\n", shell.Count(len(remarks(c)), "remark"))
	return err
}

// clientText says where clients connect, and whether they use TLS.
func clientText(c *config.Config) string {
	plain, secured := c.Client.String(), c.TLS.Client.String()
	if plain != "" && c.TLS.ClientUnified {
		plain += " with or without TLS"
	}
	if secured != "" {
		secured += " with TLS"
	}
	switch {
	case plain == "" && secured == "":
		return "no client port"
	case plain != "" && secured != "":
		return "clients at " + plain + " and " + secured
	}
	return "clients at " + plain + secured
}
