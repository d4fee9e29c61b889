"""Tests that the plugin example builds against the installed files."""
import shutil

import installed
from installed import Installed, run


class Plugin(Installed):
    def build_example(self, compiler, source):
        """Configures and builds the example from a folder with a compiler; returns (result of the command, shared
        object)."""
        build = self.new_folder()
        environment = installed.clean_environment()
        done = run(installed.CMAKE, "-S", source, "-B", build, f"-DCMAKE_PREFIX_PATH={self.prefix}",
                   f"-DCMAKE_C_COMPILER={compiler}", env=environment)
        if done.returncode == 0:
            done = run(installed.CMAKE, "--build", build, env=environment)
        return done, build / "half_rate.so"

    def changed_example(self, old, new):
        """Returns a copy of the example with a replacement in its C file."""
        folder = self.new_folder() / "cc-plugin"
        shutil.copytree(installed.SOURCE / "examples/cc-plugin", folder)
        text = (folder / "half_rate.c").read_text()
        self.assertIn(old, text)
        (folder / "half_rate.c").write_text(text.replace(old, new))
        return folder

    def roci_cc(self, *arguments):
        return run(self.prefix / "bin/roci-cc", *arguments)

    def test_example_builds_and_passes_roci_cc_check(self):
        for compiler in ("cc", "clang"):
            if shutil.which(compiler) is None:
                continue
            with self.subTest(compiler):
                done, plugin = self.build_example(compiler, installed.SOURCE / "examples/cc-plugin")
                self.assertEqual(done.returncode, 0, done.stdout)
                self.assertNotIn("warning", done.stdout)
                # The build of the example checks the plugin.
                self.assertIn("half_rate: halves the rate at a CNP", done.stdout)
                checked = self.roci_cc("check", plugin)
                self.assertEqual((checked.returncode, checked.stdout), (
                    0, f"{plugin}: half_rate: halves the rate at a CNP, then increases it in steps; 4 parameters, 16 "
                       "bytes per flow\n"))
                shown = self.roci_cc("show", "half_rate", "--plugin", plugin)
                self.assertEqual(shown.returncode, 0, shown.stdout)
                self.assertRegex(shown.stdout, r"(?m)^  period +ns +50000 +1000 to 1e9 +minimum interval between cuts")
                self.assertRegex(shown.stdout, r"(?m)^requires +CNPs of the peer$")
                self.assertIn(str(plugin), shown.stdout)

    def test_build_and_check_reject_plugin_of_another_interface_version(self):
        source = self.changed_example(".abi = ROCI_CC_ABI", ".abi = ROCI_CC_ABI + 1")
        sentence = ("plugin: built for version 2 of the plugin interface; required is version 1\n")
        done, plugin = self.build_example("cc", source)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(sentence, done.stdout)
        lines = (source / "CMakeLists.txt").read_text().splitlines()
        (source / "CMakeLists.txt").write_text("\n".join(line for line in lines if "POST_BUILD" not in line))
        done, plugin = self.build_example("cc", source)
        self.assertEqual(done.returncode, 0, done.stdout)
        refused = self.roci_cc("check", plugin)
        self.assertEqual((refused.returncode, refused.stdout),
                         (1, f"roci-cc: congestion control plugin {plugin}: {sentence}"))

