package page

import (
	"net/http"
	"time"
)

// themeCookie is the name of the cookie with the theme that the viewer has chosen. Without the cookie, the
// setting of the viewer's system decides.
const themeCookie = "bellwether-theme"

// themeOf returns the theme of a request: light, dark, or empty for the system's.
func themeOf(r *http.Request) string {
	c, err := r.Cookie(themeCookie)
	if err != nil || c.Value != "light" && c.Value != "dark" {
		return ""
	}
	return c.Value
}

// themeAge is how long a browser keeps the choice.
const themeAge = 365 * 24 * time.Hour

// setTheme stores the theme that the viewer has chosen, and leads back to the page with the form.
func setTheme(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, formMax)
	c := &http.Cookie{Name: themeCookie, Value: r.PostFormValue("theme"), Path: "/", MaxAge: int(themeAge.Seconds()), HttpOnly: true,
		SameSite: http.SameSiteLaxMode, Secure: r.TLS != nil}
	if c.Value != "light" && c.Value != "dark" {
		c.Value, c.MaxAge = "", -1
	}
	http.SetCookie(w, c)
	http.Redirect(w, r, localPath(r.PostFormValue("back")), http.StatusSeeOther)
}

// formMax is the size of the largest form without data of a znode, in bytes.
const formMax = 16 << 10
