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
	"slices"
	"strings"

	"tidekeeper.dev/tidekeeper/internal/cli/term"
	"tidekeeper.dev/tidekeeper/internal/view"
)

//go:embed templates
var templateFiles embed.FS

//go:embed assets
var assetFiles embed.FS

// shell is the page that all addresses have; it has no data in it.
var shell = func() []byte {
	text, err := assetFiles.ReadFile("assets/shell.html")
	if err != nil {
		panic(err) // It is embedded.
	}
	return text
}()

// templates escape all that comes from the cluster, by where it is put. Each site has a copy, in
// which links are those of its cluster.
var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"sign":   sign,
	"class":  func(severity any) string { return "is-" + strings.ToLower(fmt.Sprint(severity)) },
	"pool":   (&Site{}).poolHref,
	"page":   (&Site{}).href,
	"plural": plural,
	"stage":  stageText,
	"dict":   dict,
}).ParseFS(templateFiles, "templates/*.html"))

// sign is the glyph of a severity, so that no color is needed to see it.
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

// dict passes several values to a template.
func dict(values ...any) map[string]any {
	m := map[string]any{}
	for i := 0; i+1 < len(values); i += 2 {
		if name, ok := values[i].(string); ok {
			m[name] = values[i+1]
		}
	}
	return m
}

// pageContext is what every template gets.
type pageContext struct {
	D any
	// Command is the twin of the page for the terminal.
	Command string
}

// render returns the HTML of a page.
func (p *page) render(s *Site) (string, error) {
	var out bytes.Buffer
	err := s.templates.ExecuteTemplate(&out, p.template, &pageContext{p.data, s.command(p.command)})
	return out.String(), err
}

// command returns a command as a person types it.
func (s *Site) command(args []string) string {
	words := []string{"kubectl", "tide"}
	if s.context != "" {
		args = append(slices.Clone(args), "--context", s.context)
	}
	for _, arg := range args {
		if arg == "" || strings.ContainsAny(arg, " \t\n'\"\\$`&;|<>()*?[]{}#~!") {
			arg = "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
		}
		words = append(words, arg)
	}
	return term.Printable(strings.Join(words, " "))
}

// serveAsset serves script, style and icon, which have no data in them.
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
