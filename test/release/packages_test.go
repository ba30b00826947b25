// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// in returns the path of a release file, given its name.
func in(t *testing.T, name string) string {
	t.Helper()
	return filepath.Join(folder(t), name)
}

// plugin is the common prefix of the names of the plugin's release files for this machine.
const plugin = "kubectl-tide" + target + runtime.GOARCH

// TestDebInstallsAndGoes installs and removes the Debian package with dpkg, whose root and database
// are in a folder of the test.
func TestDebInstallsAndGoes(t *testing.T) {
	t.Parallel()
	deb := in(t, plugin+".deb")
	if _, err := exec.LookPath("dpkg"); err != nil {
		t.Skip("dpkg is not installed")
	}
	root := t.TempDir()
	for _, dir := range []string{"info", "updates", "triggers"} {
		if err := os.MkdirAll(filepath.Join(root, "var/lib/dpkg", dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "var/lib/dpkg/status"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	dpkg := func(args ...string) {
		t.Helper()
		if out, ok := run(t, root, "dpkg", append([]string{"--root=" + root, "--force-not-root", "--log=" + filepath.Join(root, "log")}, args...)...); !ok {
			t.Fatalf("dpkg %s: %s", strings.Join(args, " "), out)
		}
	}
	dpkg("--install", deb)
	program := filepath.Join(root, "usr/bin/kubectl-tide")
	if out, ok := run(t, root, program, "--version"); !ok || !strings.Contains(out, version) {
		t.Errorf("--version prints %q, want %s", out, version)
	}
	dpkg("--verify", "kubectl-tide")
	dpkg("--purge", "kubectl-tide")
	if _, err := os.Stat(filepath.Join(root, "usr/share/doc/kubectl-tide")); err == nil {
		t.Error("what was installed is left behind")
	}
	if _, err := os.Stat(program); err == nil {
		t.Error("the program is left behind")
	}
}

// TestRPMHasTheProgram checks the content of the RPM package. Because rpm may not be installed, it
// reads the file itself: the headers are followed by the compressed content.
func TestRPMHasTheProgram(t *testing.T) {
	t.Parallel()
	path := in(t, plugin+".rpm")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(data, []byte{0x1f, 0x8b, 0x08})
	if !bytes.HasPrefix(data, []byte{0xed, 0xab, 0xee, 0xdb}) || at < 0 {
		t.Fatal("it is not a package of RPM with gzip inside")
	}
	plain, err := gzip.NewReader(bytes.NewReader(data[at:]))
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(plain)
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(filepath.Join(unpack(t, "kubectl-tide"), "kubectl-tide"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(content, program) || !bytes.Contains(content, []byte("/usr/bin/kubectl-tide")) {
		t.Error("it does not have the program of the archive")
	}
	if _, err := exec.LookPath("rpm"); err == nil {
		if out, ok := run(t, "", "rpm", "--query", "--package", "--list", path); !ok || !strings.Contains(out, "/usr/bin/kubectl-tide\n") {
			t.Errorf("rpm lists %s", out)
		}
	}
}

// TestKrewInstallsThePlugin installs each of the plugin's archives with krew, without the network.
// The archive's checksum must be in the manifest.
func TestKrewInstallsThePlugin(t *testing.T) {
	t.Parallel()
	manifest := in(t, "tide.yaml")
	bin := filepath.Dir(os.Getenv("KREW_BIN"))
	if out, ok := run(t, "", filepath.Join(bin, "validate-krew-manifest"), "-manifest", manifest, "-skip-install"); !ok {
		t.Errorf("krew's check of the manifest: %s", out)
	}
	install := func(archive, platform string) (string, string, bool) {
		system, architecture, _ := strings.Cut(platform, "-")
		root := t.TempDir()
		command := exec.CommandContext(t.Context(), filepath.Join(bin, "krew"), "install", "--manifest="+manifest, "--archive="+archive)
		command.Env = []string{"KREW_ROOT=" + root, "HOME=" + root, "PATH=" + os.Getenv("PATH"), "KREW_NO_UPGRADE_CHECK=1", "KREW_OS=" + system, "KREW_ARCH=" + architecture}
		out, err := command.CombinedOutput()
		return root, string(out), err == nil
	}
	const begin = "kubectl-tide-" + version + "-"
	archives, err := filepath.Glob(in(t, begin+"*.tar.gz"))
	if err != nil || len(archives) == 0 {
		t.Fatalf("there are no archives of the plugin: %v", err)
	}
	for _, archive := range archives {
		platform := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(archive), begin), ".tar.gz")
		root, out, ok := install(archive, platform)
		if !ok {
			t.Errorf("%s: %s", platform, out)
			continue
		}
		if platform != runtime.GOOS+"-"+runtime.GOARCH {
			continue
		}
		if out, ok := run(t, "", filepath.Join(root, "bin/kubectl-tide"), "--version"); !ok || !strings.Contains(out, version) {
			t.Errorf("--version prints %q, want %s", out, version)
		}
		data, err := os.ReadFile(archive)
		if err != nil {
			t.Fatal(err)
		}
		data[len(data)/2] ^= 1
		tampered := filepath.Join(t.TempDir(), filepath.Base(archive))
		if err := os.WriteFile(tampered, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, out, ok := install(tampered, platform); ok {
			t.Errorf("krew installs an archive with another byte: %s", out)
		}
	}
}

// TestFormulaNamesTheArchive checks that the Homebrew formula has the checksum of the archive that
// it references.
func TestFormulaNamesTheArchive(t *testing.T) {
	t.Parallel()
	formula, err := os.ReadFile(in(t, "kubectl-tide.rb"))
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(in(t, plugin+".tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	if want := plugin + ".tar.gz\"\n      sha256 \"" + sum(data) + "\"\n"; !strings.Contains(string(formula), want) {
		t.Errorf("the formula does not have %s:\n%s", want, formula)
	}
	if _, err := exec.LookPath("ruby"); err == nil {
		if out, ok := run(t, "", "ruby", "-c", in(t, "kubectl-tide.rb")); !ok {
			t.Errorf("the formula is not Ruby: %s", out)
		}
	}
}

// TestGoInstallsThePlugin installs the plugin's module from the release with go install. The
// modules that it requires come from the local module cache. Go rejects the installation of a
// module with replace directives.
func TestGoInstallsThePlugin(t *testing.T) {
	t.Parallel()
	cache, ok := run(t, "", "go", "env", "GOMODCACHE")
	if !ok {
		t.Fatal(cache)
	}
	proxy, bin := t.TempDir(), t.TempDir()
	if out, ok := run(t, proxy, "tar", "-xzf", in(t, "tidekeeper-"+version+"-goproxy.tar.gz")); !ok {
		t.Fatal(out)
	}
	command := exec.CommandContext(t.Context(), "go", "install", "tidekeeper.dev/tidekeeper/cmd/kubectl-tide@"+version)
	command.Dir = t.TempDir()
	command.Env = append(os.Environ(), "GOPROXY=file://"+proxy+",file://"+strings.TrimSpace(cache)+"/cache/download", "GOSUMDB=off", "GOFLAGS=-trimpath -modcacherw",
		"CGO_ENABLED=0", "GOMODCACHE="+t.TempDir(), "GOBIN="+bin, "GOWORK=off")
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("go install: %v\n%s", err, out)
	}
	if out, ok := run(t, "", filepath.Join(bin, "kubectl-tide"), "--version"); !ok || !strings.Contains(out, version) {
		t.Errorf("--version prints %q, want %s", out, version)
	}
}
