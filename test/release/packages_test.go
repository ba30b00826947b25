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

// in returns the path of a file of the release.
func in(t *testing.T, name string) string {
	t.Helper()
	return filepath.Join(folder(t), name)
}

// plugin is the start of the names of the files of the plugin for this machine.
const plugin = "kubectl-tide" + target + runtime.GOARCH

// dpkg installs into a folder of the test, and keeps its records there.
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

// Where rpm is not installed, what is read is the content: behind the headers it is compressed as a whole.
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

// krew does not ask the network: it is given the archive, whose checksum is in the manifest.
func TestKrewInstallsThePlugin(t *testing.T) {
	t.Parallel()
	manifest, archive := in(t, "tide.yaml"), in(t, plugin+".tar.gz")
	bin := filepath.Dir(os.Getenv("KREW_BIN"))
	if out, ok := run(t, "", filepath.Join(bin, "validate-krew-manifest"), "-manifest", manifest, "-skip-install"); !ok {
		t.Errorf("krew's check of the manifest: %s", out)
	}
	install := func(archive string) (string, string, bool) {
		root := t.TempDir()
		command := exec.CommandContext(t.Context(), filepath.Join(bin, "krew"), "install", "--manifest="+manifest, "--archive="+archive)
		command.Env = []string{"KREW_ROOT=" + root, "HOME=" + root, "PATH=" + os.Getenv("PATH"), "KREW_NO_UPGRADE_CHECK=1"}
		out, err := command.CombinedOutput()
		return root, string(out), err == nil
	}
	root, out, ok := install(archive)
	if !ok {
		t.Fatal(out)
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
	if _, out, ok := install(tampered); ok {
		t.Errorf("krew installs an archive with another byte: %s", out)
	}
}

// Homebrew installs what the formula names by its checksum.
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

// The modules that the plugin needs come from where go has downloaded them to already; the plugin's own
// comes from the release alone. Go refuses a module that replaces others.
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
