package zk

import (
	"context"
	"time"

	"bellwether/wire"
)

func connect(context.Context, string, *Options) (*Client, error) { return nil, ErrClosed }
func open(string, *Options) (*Client, error)                     { return nil, ErrClosed }
func (c *Client) close(context.Context) error                    { return ErrClosed }
func (c *Client) detach() Session                                { return Session{} }
func (c *Client) session() Session                               { return Session{} }
func (c *Client) lastZxid() wire.Zxid                            { return 0 }
func (c *Client) setServers(string) error                        { return ErrClosed }
func (c *Client) removeWatch(context.Context, *Watch) error      { return ErrClosed }
func (c *Client) closeStream(context.Context, *Stream) error     { return ErrClosed }
func (s *Stream) next(context.Context) (Event, error)            { return Event{}, ErrClosed }
func (c *Client) addWatch(context.Context, string, wire.AddWatchMode) (*Stream, error) {
	return nil, ErrClosed
}
func (c *Client) keepAlive(time.Duration) func() { return func() {} }
func (c *Client) create(context.Context, string, []byte, []CreateOption) (p string, s wire.Stat, err error) {
	return "", s, ErrClosed
}
func (c *Client) createProtected(context.Context, string, []byte, []CreateOption) (p string, s wire.Stat, err error) {
	return "", s, ErrClosed
}
func (c *Client) newWatch(string) *Watch      { return nil }
func (w *Watch) unless(error) *Watch          { return w }
func newDigestMD5(user, password string) SASL { return nil }
func (c *Client) get(context.Context, string, *Watch) (d []byte, s wire.Stat, err error) {
	return nil, s, ErrClosed
}
func (c *Client) exists(context.Context, string, *Watch) (s wire.Stat, ok bool, err error) {
	return s, false, ErrClosed
}
func (c *Client) children(context.Context, string, *Watch) (d []string, s wire.Stat, err error) {
	return nil, s, ErrClosed
}
func (c *Client) set(context.Context, string, []byte, int32) (s wire.Stat, err error) {
	return s, ErrClosed
}
func (c *Client) delete(context.Context, string, int32) error { return ErrClosed }
func (c *Client) getACL(context.Context, string) (a ACLs, s wire.Stat, err error) {
	return nil, s, ErrClosed
}
func (c *Client) setACL(context.Context, string, ACLs, int32) (s wire.Stat, err error) {
	return s, ErrClosed
}
func (c *Client) sync(context.Context, string) error                      { return ErrClosed }
func (c *Client) ephemerals(context.Context, string) ([]string, error)    { return nil, ErrClosed }
func (c *Client) countDescendants(context.Context, string) (int, error)   { return 0, ErrClosed }
func (c *Client) whoAmI(context.Context) ([]wire.ClientInfo, error)       { return nil, ErrClosed }
func (c *Client) addAuth(context.Context, Auth) error                     { return ErrClosed }
func (c *Client) config(context.Context) (d []byte, s wire.Stat, e error) { return nil, s, ErrClosed }
func (c *Client) reconfig(context.Context, string, string, string, int64) (d []byte, s wire.Stat, e error) {
	return nil, s, ErrClosed
}
func (c *Client) multi(context.Context, []Op) ([]Result, error)     { return nil, ErrClosed }
func (c *Client) multiRead(context.Context, []Op) ([]Result, error) { return nil, ErrClosed }
