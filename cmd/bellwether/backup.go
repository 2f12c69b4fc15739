package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"bellwether/internal/shell"
	"bellwether/internal/store"
	tty "bellwether/internal/terminal"
)

const backupLong = `Let a server take a snapshot, and write it to FILE, which must not exist. The command checks the snapshot before
FILE gets its name, so that FILE is whole and sound, or does not exist.

The snapshot contains the tree, the sessions, and the zxid up to which it reaches. "data restore" restores a standalone
server from it, and docs/operate.md says how to restore an ensemble. Servers of ZooKeeper 3.9 give snapshots, too.`

const restoreLong = `Replace the history of a standalone server by the snapshot in FILE. The command checks the file first, and asks before it
sends it, unless --yes is given. All connections end; the sessions are those of the snapshot. A member of an ensemble
refuses, and says how to restore an ensemble.`

// adminFlags say how to reach the admin port of a server.
type adminFlags struct {
	url, auth string
	tls       portFlags
}

const envAuth = "BELLWETHER_AUTH"

func (f *adminFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.url, "admin", "http://127.0.0.1:8080", "`URL` of the admin port of the server")
	c.Flags().StringVar(&f.auth, "auth", "", "credential scheme:text that may read and write the root, as in digest:super:PASSWORD (default $"+envAuth+")")
	f.tls.add(c, "with https")
}

// request returns a request of a command of ZooKeeper's AdminServer, and the client that carries it out.
func (f *adminFlags) request(ctx context.Context, method, command string, body io.Reader) (*http.Client, *http.Request, error) {
	u, err := url.Parse(f.url)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, nil, shell.Usage(fmt.Errorf("--admin %q: want http://HOST:PORT or https://HOST:PORT", f.url))
	}
	scheme, text, ok := strings.Cut(cmp.Or(f.auth, os.Getenv(envAuth), "ip:x"), ":")
	if !ok || scheme == "" {
		return nil, nil, shell.Usage(fmt.Errorf("--auth or $%s: want scheme:text, as in digest:super:PASSWORD", envAuth)) // it may be a password
	}
	r, err := http.NewRequestWithContext(ctx, method, u.JoinPath("commands", command).String(), body)
	if err != nil {
		return nil, nil, shell.Usage(err)
	}
	r.Header.Set("Authorization", scheme+" "+text)
	access, err := f.tls.load()
	if err != nil {
		return nil, nil, shell.Usage(err)
	}
	return &http.Client{
		Transport: &http.Transport{
			Proxy:       nil,
			DialContext: (&net.Dialer{Timeout: f.tls.timeout}).DialContext,
			DialTLSContext: func(ctx context.Context, _, address string) (net.Conn, error) {
				ctx, cancel := context.WithTimeout(ctx, f.tls.timeout)
				defer cancel()
				return access.Dial(ctx, address)
			},
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // it would get the password
	}, r, nil
}

// answered returns why a command has failed; nil: it has not.
func answered(r *http.Response) error {
	if r.StatusCode == http.StatusOK {
		return nil
	}
	b, _ := io.ReadAll(io.LimitReader(r.Body, 64<<10))
	var body struct {
		Error string `json:"error"`
	}
	why := strings.TrimSpace(string(b))
	if json.Unmarshal(b, &body) == nil && body.Error != "" {
		why = body.Error
	}
	switch r.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		why = cmp.Or(why, "not permitted") + "; give --auth with a credential that the ACL of the root permits everything"
	case http.StatusNotFound:
		why = "the server has no such command: servers before ZooKeeper 3.9 have none"
	}
	return fmt.Errorf("%s: %s: %s", r.Request.URL.Redacted(), r.Status, why)
}

func newDataBackup() *cobra.Command {
	var f adminFlags
	c := &cobra.Command{
		Use:     "backup FILE",
		Short:   "let a server take a snapshot, and fetch it",
		Long:    backupLong,
		Example: "  bellwether data backup snapshot\n  bellwether data backup --admin https://zk1:8080 --tls-ca ca.pem --auth digest:super:secret snapshot",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return carryOut(cmd, func(ctx context.Context) error { return f.backup(ctx, cmd.OutOrStdout(), args[0]) })
		},
	}
	f.add(c)
	return c
}

// carryOut runs f until it ends or a signal ends it.
func carryOut(cmd *cobra.Command, f func(context.Context) error) error {
	ctx, stop := shell.UntilSignal(cmd.Context())
	defer stop()
	err := f(ctx)
	if why := context.Cause(ctx); err != nil && why != nil {
		return why
	}
	return err
}

// backup fetches a snapshot into a file.
func (f *adminFlags) backup(ctx context.Context, out io.Writer, path string) (err error) {
	if _, err := os.Lstat(path); err == nil {
		return fmt.Errorf("%s exists: choose another name", path)
	}
	client, request, err := f.request(ctx, http.MethodGet, "snapshot", nil)
	if err != nil {
		return err
	}
	part := path + ".part"
	file, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer os.Remove(part) // does nothing after the renaming
	defer file.Close()
	r, err := client.Do(request)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	if err := answered(r); err != nil {
		return err
	}
	bar := tty.NewBar(os.Stderr, "data backup")
	defer bar.Close()
	n, err := io.Copy(file, &counted{Reader: r.Body, bar: bar, total: r.ContentLength})
	if err == nil {
		err = errors.Join(file.Sync(), file.Close())
	}
	if err != nil {
		return fmt.Errorf("after %s: %w", shell.Count(int(n), "byte"), err)
	}
	if err := store.DumpSnapshot(store.OS(), part, store.Discard{}); err != nil {
		return fmt.Errorf("the server has sent a snapshot that is not sound: %w", err)
	}
	if err := os.Link(part, path); err != nil { // does not replace a file
		return err
	}
	bar.Close()
	_, err = fmt.Fprintf(out, "%s: %s up to %s\n", path, shell.Count(int(n), "byte"), cmp.Or(r.Header.Get("last_zxid"), "an unknown zxid"))
	return err
}

// counted is a reader that shows on a bar how much has been read.
type counted struct {
	io.Reader
	bar         *tty.Bar
	done, total int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.done += int64(n)
	c.bar.Set(c.done, max(0, c.total))
	return n, err
}

func newDataRestore() *cobra.Command {
	var f adminFlags
	var yes bool
	c := &cobra.Command{
		Use:     "restore FILE",
		Short:   "replace the history of a standalone server by a snapshot",
		Long:    restoreLong,
		Example: "  bellwether data restore --auth digest:super:secret snapshot",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := store.DumpSnapshot(store.OS(), args[0], store.Discard{}); err != nil {
				return err
			}
			if !yes && !shell.Agreed(cmd.InOrStdin(), cmd.ErrOrStderr(), fmt.Sprintf("Replace all znodes and sessions of %s by those of %s?", f.url, args[0])) {
				return errors.New("nothing was changed: answer y, or give --yes")
			}
			return carryOut(cmd, func(ctx context.Context) error { return f.restore(ctx, cmd.OutOrStdout(), args[0]) })
		},
	}
	c.Flags().BoolVar(&yes, "yes", false, "do not ask")
	f.add(c)
	return c
}

// restore sends a snapshot to a server.
func (f *adminFlags) restore(ctx context.Context, out io.Writer, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	bar := tty.NewBar(os.Stderr, "data restore")
	defer bar.Close()
	client, request, err := f.request(ctx, http.MethodPost, "restore", &counted{Reader: file, bar: bar, total: info.Size()})
	if err != nil {
		return err
	}
	request.ContentLength = info.Size()
	request.Header.Set("Content-Type", "application/octet-stream")
	r, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("%w; the log of the server says whether it was restored", err)
	}
	defer r.Body.Close()
	if err := answered(r); err != nil {
		return err
	}
	bar.Close()
	_, err = fmt.Fprintf(out, "%s has the history of %s\n", f.url, path)
	return err
}
