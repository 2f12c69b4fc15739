package config

import (
	"slices"
	"strings"
)

// adminRoutes are the paths of the admin server that do not belong to ZooKeeper's commands.
var adminRoutes = []string{"/livez", "/readyz", "/metrics", "/v1", "/signin", "/signout"}

// checkAdmin checks the path of the admin server's commands.
func (l *loader) checkAdmin() {
	a := &l.c.Admin
	if !a.Enabled {
		return
	}
	why := ""
	switch url := a.CommandURL; {
	case !strings.HasPrefix(url, "/"):
		why = "does not begin with /"
	case url == "/" || strings.HasSuffix(url, "/"):
		why = "ends with /"
	case strings.Trim(url, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./") != "" ||
		strings.Contains(url, "//") || slices.Contains(strings.Split(url, "/"), "..") || slices.Contains(strings.Split(url, "/"), "."):
		why = "is not a path that a request can name unchanged"
	case slices.ContainsFunc(adminRoutes, func(route string) bool { return url == route || strings.HasPrefix(url, route+"/") }):
		why = "is a path that the admin server uses for something else"
	}
	if why != "" {
		l.failKey("admin.commandURL", why, "use a path such as /commands")
	}
}

// warnAdmin warns about settings of the admin server that do not do what they seem to do.
func (l *loader) warnAdmin() {
	a := &l.c.Admin
	if !a.Enabled {
		for _, name := range []string{"admin.tokenFile", "admin.certificateFile"} {
			_, given := l.settings[name]
			l.warnIf(given, name, "has no effect, because admin.enableServer is false")
		}
		return
	}
	l.warnIf(a.NeedClientAuth && !a.TLS(), "admin.needClientAuth", "has no effect without admin.forceHttps or admin.portUnification")
	l.warnIf(a.NeedClientAuth && a.Unified && !a.ForceHTTPS, "admin.needClientAuth", "does not concern connections without TLS, which admin.portUnification accepts; set admin.forceHttps to require a certificate of everybody")
	l.warnIf(a.CertificateFile != "" && !a.TLS(), "admin.certificateFile", "has no effect without admin.forceHttps or admin.portUnification")
	l.warnIf(a.TokenFile != "" && !a.TLS() && !a.Address.IsLoopback(), "admin.tokenFile", "lets operators sign in only from this machine; set admin.forceHttps or admin.portUnification for others")
}
