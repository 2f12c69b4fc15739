package zk

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"bellwether/wire"
)

// errNoTLSPorts is the error of Open for Options that cannot be combined.
var errNoTLSPorts = errors.New("FollowMembers cannot be used with TLS: the ensemble's configuration names only ports without TLS")

// followPauseFirst and followPauseMax bound the pause after a failed read of the configuration. It doubles with each
// failure in a row.
const (
	followPauseFirst = 50 * time.Millisecond
	followPauseMax   = 2 * time.Second
)

// followMembers replaces the server list each time the ensemble's configuration changes, until the client ends or an
// error shows that the servers do not give the configuration to this client. Its calls wait while there is no
// connection.
func (c *Client) followMembers(ctx context.Context) {
	for pause := followPauseFirst; ; {
		err := c.followOnce(ctx)
		if c.Err() != nil || ctx.Err() != nil {
			return
		}
		switch {
		case err == nil:
			pause = followPauseFirst
			continue
		case refusesConfig(err):
			c.opt.Logger.Warn("the server list no longer follows the ensemble's configuration", "err", err)
			return
		case pause == followPauseFirst:
			c.opt.Logger.Warn("the ensemble's configuration cannot be read; the client tries again", "err", err)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
		pause = min(2*pause, followPauseMax)
	}
}

// refusesConfig reports whether a read of the configuration would fail with the same error again: servers before 3.5
// have no configuration, and an ACL or a server without the operation does not change by itself. Every other error may
// pass: of the connection or the session, of a busy server (throttled, timeout, no quorum) or of a busy client
// (ErrQueueFull).
func refusesConfig(err error) bool {
	return errors.Is(err, ErrNoNode) || errors.Is(err, ErrNoAuth) || errors.Is(err, ErrUnsupported)
}

// followOnce takes the servers of the present configuration, and waits until it changes or the session ends. It
// returns an error only if it could not read the configuration.
func (c *Client) followOnce(ctx context.Context) error {
	w := c.newWatch(dataWatch)
	text, _, err := c.config(ctx, w)
	if err != nil {
		return err
	}
	if list, err := parseMembers(string(text)); err != nil {
		c.opt.Logger.Warn("the server list stays as it is", "err", err)
	} else {
		c.useServers(list)
	}
	_, _ = w.Wait(ctx) // with an error the watch is gone too, so the configuration must be read again
	return nil
}

// parseMembers returns where the members of a configuration serve clients. It is an error if one of them does not say
// so, because the list would then be incomplete.
func parseMembers(text string) ([]server, error) {
	var list []server
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "server.") {
			continue
		}
		_, member, _ := strings.Cut(line, "=")
		quorum, client, _ := strings.Cut(member, ";")
		if client = strings.TrimSpace(client); client == "" {
			return nil, fmt.Errorf("the configuration has no client port for %s", line)
		}
		all, err := clientAddresses(quorum, client)
		if err != nil {
			return nil, err
		}
		list = append(list, all...)
	}
	if len(list) == 0 {
		return nil, errors.New("the configuration names no server")
	}
	return list, nil
}

// clientAddresses returns where a member serves clients. If that is every address of its machine, these are the ones
// at which the other members reach it.
func clientAddresses(quorum, client string) (list []server, err error) {
	host, port := "", client
	if i := strings.LastIndexByte(client, ':'); i >= 0 {
		host, port = strings.Trim(client[:i], "[]"), client[i+1:]
	}
	hosts := []string{host}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		hosts = nil
		for place := range strings.SplitSeq(quorum, "|") {
			hosts = append(hosts, quorumHost(place))
		}
	}
	for _, h := range hosts {
		s, err := parseServer(net.JoinHostPort(h, port))
		if err != nil {
			return nil, err
		}
		if !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	return list, nil
}

// quorumHost returns the host of host:port:port, without the brackets of an IPv6 address.
func quorumHost(place string) string {
	place = strings.TrimSpace(place)
	if bare, bracket := strings.CutPrefix(place, "["); bracket {
		host, _, _ := strings.Cut(bare, "]")
		return host
	}
	host, _, _ := strings.Cut(place, ":")
	return host
}

// config reads the configuration; w is a watch to set with it, or nil.
func (c *Client) config(ctx context.Context, w *Watch) (data []byte, stat Stat, err error) {
	k := c.newCall(wire.OpGetData)
	k.path, k.watch = configPath, w
	k.pathWatch = wire.PathWatchRequest{Path: configPath, Watch: w != nil}
	if w != nil {
		w.path = configPath
	}
	if err := c.do(ctx, k, configPath, &k.pathWatch, &k.data); err != nil {
		return nil, stat, err
	}
	data, stat = k.data.Data, k.data.Stat
	k.free()
	return data, stat, nil
}
