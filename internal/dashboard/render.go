// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"path"
	"strings"
	"time"

	"tidekeeper.dev/tidekeeper/internal/view"
)

//go:embed templates
var templateFiles embed.FS

//go:embed assets
var assetFiles embed.FS

// shell is the HTML document at the address of every page. It contains no data.
var shell = func() []byte {
	text, err := assetFiles.ReadFile("assets/shell.html")
	if err != nil {
		panic(err) // The file is embedded, so reading it must not fail.
	}
	return text
}()

// templates holds the HTML templates, which escape all strings from the cluster. The pages of each
// cluster use a copy whose links lead to that cluster.
var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"sign":   sign,
	"class":  func(severity any) string { return "is-" + strings.ToLower(fmt.Sprint(severity)) },
	"pool":   links{}.pool,
	"page":   links{}.page,
	"plural": plural,
	"stage":  view.StageText,
	"dict":   dict,
	"named":  nameOf,
	"dash":   dash,
	"worded": (&frame{}).worded,
}).ParseFS(templateFiles, "templates/*.html"))

// dash replaces the string "-", which the commands print for an empty value, by an en dash.
func dash(text string) string {
	if text == "-" {
		return "–"
	}
	return text
}

// sign returns the glyph for a severity, so that severities can be distinguished without colors. It
// returns "" for Neutral.
func sign(severity any) string {
	switch view.Severity(fmt.Sprint(severity)) {
	case view.Good:
		return "●"
	case view.Warning:
		return "▲"
	case view.Bad:
		return "✖"
	default:
		return ""
	}
}

// dict builds a map from alternating keys and values, to pass several values to a template.
func dict(values ...any) map[string]any {
	m := map[string]any{}
	for i := 0; i+1 < len(values); i += 2 {
		if name, ok := values[i].(string); ok {
			m[name] = values[i+1]
		}
	}
	return m
}

// pageContext is the data that every template receives.
type pageContext struct {
	D any
	// Command is the kubectl tide command that prints the same data.
	Command string
}

// frame holds the settings that all pages about a cluster share.
type frame struct {
	about     About
	local     *time.Location
	now       func() time.Time
	links     links
	templates *template.Template
}

func newFrame(about About, local *time.Location, now func() time.Time) *frame {
	f := &frame{about: about, local: local, now: now, templates: template.Must(templates.Clone())}
	f.templates.Funcs(template.FuncMap{"worded": f.worded})
	return f
}

// worded splits a message into parts, and replaces RFC 3339 timestamps, which the manager writes,
// by times in words.
func (f *frame) worded(message string) []shownTime { return wordedTimes(message, f.now(), f.local) }

// setContext adds the cluster's context to all links. It is called if the dashboard shows several
// clusters.
func (f *frame) setContext(name string) {
	f.links.context = name
	f.templates.Funcs(template.FuncMap{"pool": f.links.pool, "page": f.links.page})
}

// render returns the HTML of a page.
func (f *frame) render(p *page) (string, error) {
	var out bytes.Buffer
	err := f.templates.ExecuteTemplate(&out, p.template, &pageContext{p.data, f.links.command(p.command)})
	return out.String(), err
}

// clock formats the time of day in the page's time zone.
func (f *frame) clock(t time.Time) string { return t.In(f.local).Format(time.TimeOnly) }

// serveAsset serves the script, the style sheet and the icon. They contain no data, and require no
// token.
func serveAsset(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("asset")
	kinds := map[string]string{"app.js": "text/javascript; charset=utf-8", "app.css": "text/css; charset=utf-8", "icon.svg": "image/svg+xml"}
	text, err := assetFiles.ReadFile(path.Join("assets", name))
	if kinds[name] == "" || err != nil {
		http.Error(w, "there is no such file", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", kinds[name])
	_, _ = w.Write(text)
}
