package access

import (
	"html/template"
	"net/http"
	"net/url"
	"strings"
)

// formMax bounds the body of a sign-in, in bytes.
const formMax = 8 << 10

// Form is what the page of the sign-in shows.
type Form struct {
	Next  string // where the browser goes afterwards
	Error string // why the last try failed; empty: there was none
	Name  string // who is signed in; empty: nobody
}

// FormWriter writes the page of the sign-in with a status. The page must post the fields token and next to
// /signin, or an empty form to /signout.
type FormWriter func(w http.ResponseWriter, r *http.Request, status int, f Form)

// SignIn returns the handler of /signin. If form is nil, the page has no style.
func (a *Access) SignIn(form FormWriter) http.Handler {
	if form == nil {
		form = plainForm
	}
	return a.cross.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v, known := a.viewer(r)
		switch {
		case !v.Loopback && !v.TLS:
			http.Error(w, a.whyRefused(r), http.StatusForbidden)
		case !known:
			http.Error(w, "the token is not known: use one of admin.tokenFile", http.StatusUnauthorized)
		case a.operators.Load().none():
			http.Error(w, "nobody can sign in: set admin.tokenFile or admin.certificateFile", http.StatusForbidden)
		case r.Method == http.MethodGet || r.Method == http.MethodHead:
			form(w, r, http.StatusOK, Form{Next: local(r.URL.Query().Get("next")), Name: v.Operator})
		case r.Method == http.MethodPost:
			a.signIn(w, r, form)
		default:
			w.Header().Set("Allow", "GET, HEAD, POST")
			http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
		}
	}))
}

// signIn checks the token of a form and begins a session.
func (a *Access) signIn(w http.ResponseWriter, r *http.Request, form FormWriter) {
	r.Body = http.MaxBytesReader(w, r.Body, formMax)
	if err := r.ParseForm(); err != nil {
		http.Error(w, "the form cannot be read: send it again", http.StatusBadRequest)
		return
	}
	next := local(r.PostForm.Get("next"))
	name, sum, ok := a.login(r, strings.TrimSpace(r.PostForm.Get("token")))
	if !ok {
		a.opt.Log.Warn("an operator's sign-in failed: the token is not known", "client", remote(r))
		form(w, r, http.StatusUnauthorized, Form{Next: next, Error: "The token is not known."})
		return
	}
	a.opt.Log.Info("an operator has signed in", "operator", name, "client", remote(r))
	http.SetCookie(w, cookie(r, a.sessions.begin(name, sum, a.now())))
	http.Redirect(w, r, next, http.StatusSeeOther)
}

// SignOut returns the handler of /signout, which takes a POST.
func (a *Access) SignOut() http.Handler {
	return a.cross.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			w.Header().Set("Allow", "POST")
			http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
			return
		}
		if c, err := r.Cookie(cookieName(r)); err == nil {
			a.sessions.end(c.Value)
		}
		http.SetCookie(w, cookie(r, ""))
		http.Redirect(w, r, "/", http.StatusSeeOther)
	}))
}

// toSignIn sends a browser to the sign-in.
func toSignIn(w http.ResponseWriter, r *http.Request) {
	to := "/signin"
	if r.Method == http.MethodGet {
		to += "?next=" + url.QueryEscape(local(r.URL.RequestURI()))
	}
	http.Redirect(w, r, to, http.StatusSeeOther)
}

// local returns next if it is a path of this server, and "/" otherwise, so that a sign-in cannot
// lead to another site.
func local(next string) string {
	u, err := url.Parse(next)
	if err != nil || u.IsAbs() || u.Host != "" || !strings.HasPrefix(next, "/") || strings.HasPrefix(next, "//") ||
		strings.ContainsFunc(next, func(r rune) bool { return r < ' ' || r == '\\' || r == 0x7f }) {
		return "/"
	}
	return next
}

var plainPage = template.Must(template.New("signin").Parse(`<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Sign in: Bellwether</title></head>
<body>
<main>
<h1>Sign in</h1>
{{with .Name}}<p>You are signed in as {{.}}.</p>
<form method="post" action="/signout"><button>Sign out</button></form>{{end}}
{{with .Error}}<p role="alert">{{.}}</p>{{end}}
<form method="post" action="/signin">
<p><label for="token">Token of an operator</label> <input id="token" name="token" type="password" autocomplete="current-password" required autofocus></p>
<input type="hidden" name="next" value="{{.Next}}">
<p><button>Sign in</button></p>
</form>
</main>
</body>
</html>
`))

// plainForm writes the form without any style.
func plainForm(w http.ResponseWriter, _ *http.Request, status int, f Form) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_ = plainPage.Execute(w, f) // the client may have gone
}
