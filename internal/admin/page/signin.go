package page

import (
	"net/http"

	"bellwether/internal/admin/access"
)

// SignIn writes the page of the sign-in. It is an access.FormWriter.
func (p *Page) SignIn(w http.ResponseWriter, r *http.Request, status int, f access.Form) {
	secureHeaders(w.Header())
	p.render(w, r, status, signInSheet, f)
}
