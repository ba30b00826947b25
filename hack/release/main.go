// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// release holds the inputs and the resulting files of a release.
type release struct {
	version, built, image, url string
	// commit is the released source commit. goVersion is the Go version that compiled the programs.
	commit, goVersion string
	// findings is the path of a file with the output of govulncheck -format=json. It is empty if
	// there is none.
	findings string
	at       time.Time
	// files maps the names of the release's files to their contents.
	files map[string][]byte
	// plugins lists the plugin's archives.
	plugins []packed
	// managers maps each platform of the image to the manager's binary. platforms lists these
	// platforms in order.
	managers  map[platform][]byte
	platforms []platform
	// hasKit is true if the release contains archives of the test kit.
	hasKit bool
	// digest is the image's digest.
	digest string
}

// defaultImage is the image name in config/ and in the chart. It is used if no repository is given.
const defaultImage = "tidekeeper"

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run() error {
	if len(os.Args) > 1 && os.Args[1] == "push" {
		return push(os.Args[2:])
	}
	r := &release{files: map[string][]byte{}, managers: map[platform][]byte{}}
	var seconds int64
	var out, key string
	var only bool
	flag.StringVar(&r.version, "version", "", "the version, such as v0.1.0")
	flag.StringVar(&r.built, "built", "", "the folder with PROGRAM/OS/ARCHITECTURE/PROGRAM")
	flag.StringVar(&r.image, "image", "", "the repository of the published image, for the chart and install.yaml")
	flag.StringVar(&r.commit, "commit", "", "the commit that is released")
	flag.StringVar(&r.findings, "findings", "", "a file that govulncheck -format=json wrote, for the VEX document")
	flag.StringVar(&r.url, "url", "", "the address at which the files are published")
	flag.Int64Var(&seconds, "time", 0, "the time of all files, in seconds since 1970")
	flag.StringVar(&out, "out", "", "the folder to write, which is replaced")
	flag.StringVar(&key, "key", "", "a private key of ECDSA in PEM (PKCS #8) that signs the files")
	flag.BoolVar(&only, "check", false, "only check the other flags, as before the programs are built")
	flag.Parse()
	if r.version == "" || r.built == "" || out == "" || flag.NArg() == 0 {
		return errors.New("want --version, --built, --out and some PROGRAM/OS/ARCHITECTURE")
	}
	if r.image == "" {
		r.image = defaultImage
	}
	r.at = time.Unix(seconds, 0).UTC()
	if err := r.check(flag.Args(), out, key); err != nil || only {
		return err
	}
	if err := r.pack(flag.Args()); err != nil {
		return err
	}
	return r.write(out, key)
}

// pack adds all files of the release except the checksums and the signatures.
func (r *release) pack(builds []string) error {
	for _, build := range builds {
		if err := r.program(build); err != nil {
			return fmt.Errorf("%s: %w", build, err)
		}
	}
	for _, step := range []func() error{r.forPlugins, r.forImage, r.forModule, r.notes, r.guide, r.vex} {
		if err := step(); err != nil {
			return err
		}
	}
	statement, err := provenanceOf(r, builds)
	r.files["provenance.json"] = statement
	return err
}

// forPlugins adds the plugin's krew manifest and Homebrew formula.
func (r *release) forPlugins() error {
	if len(r.plugins) == 0 {
		return nil
	}
	var err error
	if r.files["tide.yaml"], err = krewOf(r.version, r.url, r.plugins); err != nil {
		return err
	}
	r.files["kubectl-tide.rb"], err = brewOf(r.version, r.url, r.plugins)
	return err
}

// forImage adds the image, and the chart and the file install.yaml, both of which install the
// image.
func (r *release) forImage() error {
	if len(r.platforms) == 0 {
		return nil
	}
	image, digest, err := imageOf(r.managers, r.platforms, r.version, r.at)
	if err != nil {
		return err
	}
	r.digest = digest
	r.files["tidekeeper-"+r.version+"-image.tar"] = image
	r.files["tidekeeper-"+strings.TrimPrefix(r.version, "v")+".tgz"], err = chartOf(os.DirFS("charts/tidekeeper"), r.version, r.image, digest, r.platforms, r.at)
	if err != nil {
		return err
	}
	r.files["install.yaml"], err = installOf(os.DirFS("config"), r.image, digest)
	return err
}

// forModule adds the Go module's source at the released commit.
func (r *release) forModule() error {
	if r.commit == "" || !r.hasOperator() {
		return nil
	}
	data, err := proxyOf(".", r.commit, r.version, r.at)
	r.files["tidekeeper-"+r.version+"-goproxy.tar.gz"] = data
	return err
}

// hasOperator reports whether the release contains the plugin or the manager.
func (r *release) hasOperator() bool { return len(r.plugins)+len(r.platforms) > 0 }

// vex adds the VEX document if govulncheck's findings are given.
func (r *release) vex() error {
	if r.findings == "" {
		return nil
	}
	findings, err := os.ReadFile(r.findings)
	if err != nil {
		return err
	}
	r.files["tidekeeper-"+r.version+".openvex.json"], err = vexOf(findings, r.version, r.image, r.digest, r.at)
	return err
}

// notes adds the release notes of the operator and of the test kit.
func (r *release) notes() error {
	changelogs := map[string]string{}
	if r.hasOperator() {
		changelogs["NOTES.md"] = "CHANGELOG.md"
	}
	if r.hasKit {
		changelogs["NOTES-sandbox.md"] = "sandbox/CHANGELOG.md"
	}
	for name, changelog := range changelogs {
		text, err := page(changelog)
		if err != nil {
			return err
		}
		notes, err := notesOf(text, r.version)
		if err != nil {
			return err
		}
		r.files[name] = []byte(notes)
	}
	return nil
}

// program adds a program's archive for a platform, and its software bill of materials.
func (r *release) program(build string) error {
	names := strings.Split(build, "/")
	program, p := names[0], platform{OS: names[1], Architecture: names[2]}
	parts := partsOf(program, p.OS)
	files, infos, thirdParty, err := r.programs(parts, p)
	if err != nil {
		return err
	}
	r.goVersion = infos[0].GoVersion
	// The demo has no pages of its own, so its archive contains the operator's pages.
	pages := parts[0].module
	if program == demoArchive {
		pages = "."
	}
	licence, err := os.ReadFile(filepath.Join(pages, "LICENSE"))
	if err != nil {
		return err
	}
	readme, err := page(path.Join(pages, "README.md"))
	if err != nil {
		return err
	}
	files = append(files, file{name: "LICENSE", mode: 0o644, content: licence}, file{name: "README.md", mode: 0o644, content: []byte(readme)})
	files = append(files, file{name: "THIRD-PARTY-LICENSES", mode: 0o644, content: thirdParty})
	data, err := archive(files, r.at)
	if err != nil {
		return err
	}
	base := strings.Join([]string{program, r.version, p.OS, p.Architecture}, "-")
	r.files[base+".tar.gz"] = data
	if r.files[base+".cdx.json"], err = sbomOf(strings.TrimSuffix(parts[0].bin, ".exe"), r.version, infos...); err != nil {
		return err
	}
	switch program {
	case "sandbox":
		r.hasKit = true
	case "kubectl-tide":
		r.plugins = append(r.plugins, packed{platform: p, name: base + ".tar.gz", sha256: sha(data)})
		if p.OS == "linux" {
			return r.packages(files, p.Architecture)
		}
	case "tidekeeper":
		r.platforms = append(r.platforms, p)
		r.managers[p] = files[0].content
	}
	return nil
}

// packages adds the plugin's deb and rpm packages for a Linux architecture.
func (r *release) packages(files []file, architecture string) error {
	var err error
	base := strings.Join([]string{packageName, r.version, "linux", architecture}, "-")
	if r.files[base+".deb"], err = debOf(files, r.version, architecture, r.at); err != nil {
		return err
	}
	r.files[base+".rpm"], err = rpmOf(files, r.version, architecture, r.at)
	return err
}

// write writes the release's folder, including checksums of all files and, if a key is given,
// signatures.
func (r *release) write(out, key string) error {
	sums := checksums(r.files)
	r.files["checksums.txt"] = sums
	if key != "" {
		private, err := os.ReadFile(key)
		if err != nil {
			return err
		}
		if err := signFiles(r.files, private); err != nil {
			return err
		}
	}
	if err := replaceable(out); err != nil {
		return err
	}
	if err := os.RemoveAll(out); err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	for name, content := range r.files {
		if err := os.WriteFile(filepath.Join(out, name), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}
