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

// shell is the HTML page at every address. It contains no data.
var shell = func() []byte {
	text, err := assetFiles.ReadFile("assets/shell.html")
	if err != nil {
		panic(err) // The file is embedded, so reading it cannot fail.
	}
	return text
}()

// templates escape all text from the cluster according to its context in the HTML. Each site has a copy whose
// links lead to its cluster.
var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"sign":   sign,
	"class":  func(severity any) string { return "is-" + strings.ToLower(fmt.Sprint(severity)) },
	"pool":   links{}.pool,
	"page":   links{}.page,
	"plural": plural,
	"stage":  stageText,
	"dict":   dict,
	"named":  nameOf,
	"dash":   dash,
	"worded": (&frame{}).worded,
}).ParseFS(templateFiles, "templates/*.html"))

// dash is how all pages show that there is nothing: the commands print a hyphen.
func dash(text string) string {
	if text == "-" {
		return "–"
	}
	return text
}

// sign returns the glyph of a severity, so that severities are recognizable without colors.
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

// dict builds a map, which passes several values to a template.
func dict(values ...any) map[string]any {
	m := map[string]any{}
	for i := 0; i+1 < len(values); i += 2 {
		if name, ok := values[i].(string); ok {
			m[name] = values[i+1]
		}
	}
	return m
}

// pageContext is the data of every template.
type pageContext struct {
	D any
	// Command is the kubectl command that prints the same data.
	Command string
}

// frame has the settings that all pages of a cluster share.
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

// worded returns a message with its times in words, as pages have them: the manager writes them for
// programs.
func (f *frame) worded(message string) []shownTime { return wordedTimes(message, f.now(), f.local) }

// setContext adds the context to all links, on a site of several clusters.
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

// clock formats a time for pages.
func (f *frame) clock(t time.Time) string { return t.In(f.local).Format(time.TimeOnly) }

// serveAsset serves script, style and icon. They contain no data, so they require no token.
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
