# Tests of the HIP interface and the kernels that they run.
set(EMU_TEST_KERNELS ${PROJECT_BINARY_DIR}/kernels)
file(MAKE_DIRECTORY ${EMU_TEST_KERNELS})
find_program(EMU_CLANG NAMES clang++-19 clang++)
set(EMU_HIP_FLAGS -x hip -std=c++20 -O3 --offload-device-only -nogpuinc -nogpulib -fuse-cuid=none)
set(EMU_KERNEL_FILES)

# emu_kernels(OUTPUT SOURCE FLAGS...): builds one code object or bundle.
function(emu_kernels output source)
  set(from ${CMAKE_CURRENT_SOURCE_DIR}/kernels/${source})
  add_custom_command(
    OUTPUT ${EMU_TEST_KERNELS}/${output}
    COMMAND ${EMU_CLANG} ${EMU_HIP_FLAGS} ${ARGN} -c ${from} -o ${EMU_TEST_KERNELS}/${output}
    DEPENDS ${from} ${CMAKE_CURRENT_SOURCE_DIR}/kernels/device.h ${CMAKE_CURRENT_SOURCE_DIR}/kernels/chips.h
            ${CMAKE_CURRENT_SOURCE_DIR}/kernels/inlined.h ${EMU_KERNEL_HEADERS}
    VERBATIM)
  set(EMU_KERNEL_FILES ${EMU_KERNEL_FILES} ${EMU_TEST_KERNELS}/${output} PARENT_SCOPE)
endfunction()

set(plain --no-gpu-bundle-output)
emu_kernels(preload.gfx90a.hsaco basic.hip ${plain} --offload-arch=gfx90a -mllvm -amdgpu-kernarg-preload-count=8)
# The kernels of the checks, for each chip. clang 19 doesn't know gfx950 and compiles for gfx942 instead.
set(EMU_CHIPS gfx1100 gfx1101 gfx1151 gfx1030 gfx1200 gfx1201 gfx90a gfx942)
foreach(arch ${EMU_CHIPS})
  emu_kernels(basic.${arch}.hsaco basic.hip ${plain} --offload-arch=${arch})
  emu_kernels(checks.${arch}.hsaco checks.hip ${plain} --offload-arch=${arch})
  emu_kernels(planted.${arch}.hsaco planted.hip ${plain} --offload-arch=${arch} -gline-tables-only)
  emu_kernels(clean.${arch}.hsaco clean.hip ${plain} --offload-arch=${arch})
  emu_kernels(clean_O0.${arch}.hsaco clean.hip ${plain} --offload-arch=${arch} -O0)
endforeach()
foreach(name basic checks planted clean clean_O0)
  set(to ${EMU_TEST_KERNELS}/${name}.gfx950.hsaco)
  set(from ${EMU_TEST_KERNELS}/${name}.gfx942.hsaco)
  add_custom_command(OUTPUT ${to} COMMAND python3 ${CMAKE_CURRENT_SOURCE_DIR}/retarget.py ${from} ${to}
                     DEPENDS ${from} ${CMAKE_CURRENT_SOURCE_DIR}/retarget.py VERBATIM)
  list(APPEND EMU_KERNEL_FILES ${to})
endforeach()
emu_kernels(checks_cu.gfx1100.hsaco checks.hip ${plain} --offload-arch=gfx1100 -mcumode)
emu_kernels(checks_split.gfx90a.hsaco checks.hip ${plain} --offload-arch=gfx90a -mtgsplit)
emu_kernels(inlined.gfx1100.hsaco inlined.hip ${plain} --offload-arch=gfx1100 -gline-tables-only)
emu_kernels(profile.gfx1100.hsaco profile.hip ${plain} --offload-arch=gfx1100)
emu_kernels(basic.v4.hsaco basic.hip ${plain} --offload-arch=gfx1100 -mcode-object-version=4)
emu_kernels(basic.v6.hsaco basic.hip ${plain} --offload-arch=gfx1100 -mcode-object-version=6)
emu_kernels(basic.gfx11-generic.hsaco basic.hip ${plain} --offload-arch=gfx11-generic
            -mcode-object-version=6)
emu_kernels(whole.gfx1100.hsaco whole.hip ${plain} --offload-arch=gfx1100)
emu_kernels(waits.gfx1200.hsaco waits.hip ${plain} --offload-arch=gfx1200)
emu_kernels(nonuniform.gfx1100.hsaco basic.hip ${plain} --offload-arch=gfx1100
            -fno-offload-uniform-block)
set(EMU_KERNEL_HEADERS ${CMAKE_CURRENT_SOURCE_DIR}/../hip/device_hostcall.h)
foreach(arch gfx1100 gfx90a)
  foreach(version 4 5 6)
    emu_kernels(hostcall.${arch}.v${version}.hsaco hostcall.hip ${plain} --offload-arch=${arch} -w
                -mcode-object-version=${version})
    emu_kernels(print_buffer.${arch}.v${version}.hsaco print_buffer.hip ${plain} --offload-arch=${arch} -w
                -mcode-object-version=${version} -mprintf-kind=buffered)
  endforeach()
endforeach()
set(EMU_KERNEL_HEADERS)
add_custom_command(
  OUTPUT ${EMU_TEST_KERNELS}/print_opencl.gfx1100.hsaco
  COMMAND ${EMU_CLANG} -x cl -cl-std=CL2.0 -target amdgcn-amd-amdhsa -mcpu=gfx1100 -O2 -nogpulib -w
          -Xclang -finclude-default-header ${CMAKE_CURRENT_SOURCE_DIR}/kernels/print_opencl.cl
          -o ${EMU_TEST_KERNELS}/print_opencl.gfx1100.hsaco
  DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/kernels/print_opencl.cl VERBATIM)
list(APPEND EMU_KERNEL_FILES ${EMU_TEST_KERNELS}/print_opencl.gfx1100.hsaco)
foreach(arch gfx1030 gfx1100 gfx1200 gfx1201)
  emu_kernels(texture.${arch}.hsaco texture.hip ${plain} --offload-arch=${arch} -w)
endforeach()
# Bundles require clang's bundler, which is in a separate package.
find_program(EMU_BUNDLER NAMES clang-offload-bundler clang-offload-bundler-19
             PATHS /usr/lib/llvm-19/bin)
if(EMU_BUNDLER)
  emu_kernels(basic.bundle basic.hip --offload-arch=gfx90a --offload-arch=gfx1100)
  emu_kernels(basic.ccob basic.hip --offload-arch=gfx90a --offload-arch=gfx1100 --offload-compress)
endif()
# Two objects linked into one, which has a metadata note of each.
set(linked)
foreach(source basic inlined)
  set(from ${CMAKE_CURRENT_SOURCE_DIR}/kernels/${source}.hip)
  set(object ${EMU_TEST_KERNELS}/${source}.gfx1100.o)
  add_custom_command(
    OUTPUT ${object}
    COMMAND ${EMU_CLANG} ${EMU_HIP_FLAGS} ${plain} -fuse-cuid=hash --offload-arch=gfx1100 -S ${from} -o ${object}.s
    COMMAND ${EMU_CLANG} --target=amdgcn-amd-amdhsa -mcpu=gfx1100 -c -x assembler ${object}.s
            -o ${object}
    DEPENDS ${from} ${CMAKE_CURRENT_SOURCE_DIR}/kernels/device.h
            ${CMAKE_CURRENT_SOURCE_DIR}/kernels/inlined.h
    VERBATIM)
  list(APPEND linked ${object})
endforeach()
find_program(EMU_LLD NAMES ld.lld-19 ld.lld REQUIRED)
add_custom_command(OUTPUT ${EMU_TEST_KERNELS}/linked.gfx1100.hsaco
                   COMMAND ${EMU_LLD} -shared ${linked} -o ${EMU_TEST_KERNELS}/linked.gfx1100.hsaco
                   DEPENDS ${linked} VERBATIM)
list(APPEND EMU_KERNEL_FILES ${EMU_TEST_KERNELS}/linked.gfx1100.hsaco)
# A kernel in assembly.
add_custom_command(
  OUTPUT ${EMU_TEST_KERNELS}/entries.gfx1100.hsaco
  COMMAND ${EMU_CLANG} --target=amdgcn-amd-amdhsa -mcpu=gfx1100 -c -x assembler
          ${CMAKE_CURRENT_SOURCE_DIR}/kernels/entries.s -o ${EMU_TEST_KERNELS}/entries.gfx1100.o
  COMMAND ${EMU_LLD} -shared ${EMU_TEST_KERNELS}/entries.gfx1100.o
          -o ${EMU_TEST_KERNELS}/entries.gfx1100.hsaco
  DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/kernels/entries.s VERBATIM)
list(APPEND EMU_KERNEL_FILES ${EMU_TEST_KERNELS}/entries.gfx1100.hsaco)
# The corpus, for the test that the checks find nothing in it.
file(GLOB corpus CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/corpus/*.hip)
foreach(source ${corpus})
  get_filename_component(name ${source} NAME_WE)
  foreach(arch gfx1100 gfx90a)
    if((arch STREQUAL gfx1100 AND name STREQUAL mfma) OR (arch STREQUAL gfx90a AND name STREQUAL matrix))
      continue()  # each family has its own matrix instructions
    endif()
    foreach(level O0 O2)
      set(output ${EMU_TEST_KERNELS}/corpus/${name}.${level}.${arch}.hsaco)
      add_custom_command(
        OUTPUT ${output}
        COMMAND ${EMU_CLANG} ${EMU_HIP_FLAGS} ${plain} --offload-arch=${arch} -${level} -w
                -gline-tables-only -ffp-contract=off -c ${source} -o ${output}
        DEPENDS ${source} ${CMAKE_CURRENT_SOURCE_DIR}/corpus/corpus.h
        VERBATIM)
      list(APPEND EMU_KERNEL_FILES ${output})
    endforeach()
  endforeach()
endforeach()
file(MAKE_DIRECTORY ${EMU_TEST_KERNELS}/corpus)
add_custom_target(emu_test_kernels DEPENDS ${EMU_KERNEL_FILES})

file(GLOB EMU_HIP_TESTS CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/hip_*_test.cpp)
add_executable(emu_hip_test ${EMU_HIP_TESTS})
target_compile_definitions(emu_hip_test PRIVATE EMU_TEST_KERNELS="${EMU_TEST_KERNELS}"
                                                EMU_HIP_MAP="${PROJECT_SOURCE_DIR}/hip/hip.map")
target_include_directories(emu_hip_test PRIVATE ${EMU_ROOT})
target_link_libraries(emu_hip_test PRIVATE wick_emu GTest::gtest_main Threads::Threads)
emu_test_options(emu_hip_test -O0)
add_dependencies(emu_hip_test emu_test_kernels)

function(emu_hip_ctest name filter)
  add_test(NAME ${name} COMMAND emu_hip_test --gtest_filter=${filter})
  set_tests_properties(${name} PROPERTIES LABELS emu TIMEOUT 120 ENVIRONMENT "${ARGN}")
endfunction()
emu_hip_ctest(emu_hip "*:-HipRtc*:HipTimeout.*:HipDevices.*:HipAllocator.*:HipHostile.*:HipChecks.*:HipMistakes.*:HipStreamRaces.*:HipCorpus.*:HipWaits.*:HipPreload.*:HipInterleave.*")
emu_hip_ctest(emu_hip_whole_v3 "HipWhole.*" WICK_EMU_ISA=v3)
emu_hip_ctest(emu_hip_waits_gfx1200 "HipWaits.*" WICK_EMU_DEVICES=gfx1200 WICK_EMU_CHECK=waits)
emu_hip_ctest(emu_hip_checked "*:-HipRtc*:HipTimeout.*:HipDevices.*:HipAllocator.*:HipHostile.*:HipWaits.*:HipObject.SurvivesMutatedCode:HipPreload.*:HipInterleave.*:HipMistakes.*:HipStreamRaces.*:HipChecks.Misalignment" WICK_EMU_CHECK=all)
emu_hip_ctest(emu_hip_seed "HipLaunch.*:HipStream.*:HipGraph.*:HipPool.*:HipEvent.*:HipCapture.*" WICK_EMU_SEED=12345)
foreach(seed 1 2 3)
  emu_hip_ctest(emu_hip_interleave_${seed} "HipInterleave.*:HipStream.*:HipThreadStream.*" WICK_EMU_SEED=${seed})
endforeach()
emu_hip_ctest(emu_hip_gfx90a "HipLaunch.*:*HipHostcall.*:HipStream.*:HipProgram.*:HipBadInput.*:HipCorpus.*:HipPreload.*:-*BlocksDontDivide:*UnknownInstruction"
              WICK_EMU_DEVICES=gfx90a WICK_EMU_CHECK=all)
# Each test compiles a program.
emu_hip_ctest(emu_hip_rtc "HipRtc*")
emu_hip_ctest(emu_hip_rtc_gfx90a "HipRtcLanguage.*:HipRtcMath.*:-HipRtcMath.FloatAndDouble"
              WICK_EMU_DEVICES=gfx90a WICK_EMU_CHECK=all)
set_tests_properties(emu_hip_rtc emu_hip_rtc_gfx90a PROPERTIES TIMEOUT 300)
foreach(arch gfx1030 gfx1200 gfx1201)
  emu_hip_ctest(emu_hip_${arch} "HipTexture.*:HipArray.*" WICK_EMU_DEVICES=${arch} WICK_EMU_CHECK=all)
endforeach()
foreach(arch gfx1030 gfx1200)
  emu_hip_ctest(emu_hip_rtc_${arch} "HipRtcTexture.*" WICK_EMU_DEVICES=${arch} WICK_EMU_CHECK=all)
endforeach()
emu_hip_ctest(emu_hip_devices "HipDevices.*" WICK_EMU_DEVICES=gfx1100,gfx90a
              WICK_EMU_MEMORY=1G,2G WICK_EMU_CHECK=all WICK_EMU_THREADS=1)
emu_hip_ctest(emu_hip_allocator "HipAllocator.*" WICK_EMU_MEMORY=16M)
emu_hip_ctest(emu_hip_allocator_checked "HipAllocator.*" WICK_EMU_MEMORY=16M WICK_EMU_CHECK=all)
foreach(arch gfx1100 gfx90a gfx942 gfx1030 gfx1200)
  emu_hip_ctest(emu_hip_mistakes_${arch} "HipMistakes.*:HipStreamRaces.*" WICK_EMU_DEVICES=${arch} WICK_EMU_CHECK=all)
endforeach()
# Planted faults on a chip of each other generation. Neither source lines nor the sharing of the shadow
# depends on the chip.
set(planted "HipChecks.*:-HipChecks.Misalignment:HipChecks.NoRacesBetweenGroupsThatShareDwords:HipChecks.*Lines*")
foreach(arch gfx90a gfx1030 gfx1200)
  emu_hip_ctest(emu_hip_checks_${arch} "${planted}" WICK_EMU_DEVICES=${arch} WICK_EMU_CHECK=all)
endforeach()
# The chips of the same generations, on demand: ctest -C chips
foreach(arch gfx1101 gfx1151 gfx1201 gfx942 gfx950)
  emu_chip_test(emu_chip_checks_${arch} emu_hip_test --gtest_filter=HipMistakes.*:HipStreamRaces.*:${planted})
  set_tests_properties(emu_chip_checks_${arch} PROPERTIES ENVIRONMENT "WICK_EMU_DEVICES=${arch};WICK_EMU_CHECK=all")
endforeach()
emu_hip_ctest(emu_hip_mistakes_seed "HipMistakes.*:HipStreamRaces.*" WICK_EMU_CHECK=all WICK_EMU_SEED=7)
foreach(check races waits registers barriers alignment)
  set(tests_races "HipChecks.RacesInLds:HipChecks.RacesOfLanes:HipChecks.RacesBetweenWorkgroups:HipChecks.NoRaces*")
  set(tests_waits "HipChecks.MissingWaits")
  set(tests_registers "HipChecks.RegistersThatNothingWrote")
  set(tests_barriers "HipChecks.BarriersThatLanesDontReach")
  set(tests_alignment "HipChecks.Misalignment")
  emu_hip_ctest(emu_check_${check} "${tests_${check}}" WICK_EMU_CHECK=${check})
endforeach()
emu_hip_ctest(emu_check_races_threads "HipChecks.NoRaces*" WICK_EMU_CHECK=races WICK_EMU_THREADS=4)
emu_hip_ctest(emu_hip_hostile "HipHostile.*" WICK_EMU_TIMEOUT=0.1 WICK_EMU_CHECK=all,alignment)
emu_hip_ctest(emu_hip_timeout "HipTimeout.*" WICK_EMU_TIMEOUT=1)
emu_hip_ctest(emu_hip_timeout_checked "HipTimeout.*" WICK_EMU_TIMEOUT=1 WICK_EMU_CHECK=all)

# A program with <<<>>> that is compiled against the public headers, and a check of the ABI against
# them. If the headers aren't installed, both tests report that they are skipped.
find_path(EMU_HIP_HEADERS hip/hip_runtime_api.h)
set(EMU_LACKS)
if(NOT EMU_HIP_HEADERS)
  list(APPEND EMU_LACKS "HIP headers (libamdhip64-dev)")
endif()
if(NOT EMU_BUNDLER)
  list(APPEND EMU_LACKS "clang-offload-bundler (clang-tools-19)")
endif()
function(emu_header_test name)
  if(EMU_LACKS)
    message(STATUS "emu: ${name} will be skipped: no ${EMU_LACKS}")
    add_test(NAME ${name} COMMAND ${CMAKE_COMMAND} -E echo "skipped: no ${EMU_LACKS}")
    set_tests_properties(${name} PROPERTIES SKIP_REGULAR_EXPRESSION skipped)
  else()
    add_test(NAME ${name} COMMAND ${ARGN})
  endif()
  set_tests_properties(${name} PROPERTIES LABELS emu TIMEOUT 120)
endfunction()
cmake_path(GET EMU_BUNDLER PARENT_PATH bundler_folder)
emu_header_test(emu_hip_program ${CMAKE_CURRENT_SOURCE_DIR}/program.sh ${EMU_CLANG}
  ${CMAKE_CURRENT_SOURCE_DIR}/program.hip $<TARGET_FILE_DIR:wick_emu> ${EMU_HIP_HEADERS}
  ${bundler_folder} ${PROJECT_BINARY_DIR}/program)
emu_header_test(emu_hip_abi python3 ${CMAKE_CURRENT_SOURCE_DIR}/abi_check.py ${EMU_CLANG}
  ${EMU_HIP_HEADERS} ${EMU_ROOT})

# Uses Debian's librocrand1 if it is installed when the tests run.
add_executable(emu_rocrand rocrand.cpp)
target_include_directories(emu_rocrand PRIVATE ${EMU_ROOT})
target_link_libraries(emu_rocrand PRIVATE wick_emu ${CMAKE_DL_LIBS})
add_test(NAME emu_rocrand COMMAND emu_rocrand)
set_tests_properties(emu_rocrand PROPERTIES LABELS emu TIMEOUT 120 SKIP_RETURN_CODE 77 ENVIRONMENT
  "WICK_EMU_DEVICES=gfx90a,gfx1030;LD_LIBRARY_PATH=$<TARGET_FILE_DIR:wick_emu>")

add_test(NAME emu_profile COMMAND python3 ${CMAKE_CURRENT_SOURCE_DIR}/profile_check.py
                                  $<TARGET_FILE:emu_hip_test>)
set_tests_properties(emu_profile PROPERTIES LABELS emu TIMEOUT 60)

# The model library for AMD's own runtime, called as that runtime calls it. No ROCm is needed.
add_executable(emu_model_test model_support.cpp model_dispatch_test.cpp model_lies_test.cpp)
target_compile_definitions(emu_model_test PRIVATE EMU_TEST_KERNELS="${EMU_TEST_KERNELS}")
target_include_directories(emu_model_test PRIVATE ${EMU_ROOT})
target_link_libraries(emu_model_test PRIVATE wick_emu_model GTest::gtest_main Threads::Threads)
emu_test_options(emu_model_test -O0)
add_dependencies(emu_model_test emu_test_kernels)
foreach(arch gfx1100 gfx90a)
  add_test(NAME emu_model_${arch} COMMAND emu_model_test --gtest_filter=-*.Timeout*)
  add_test(NAME emu_model_timeout_${arch} COMMAND emu_model_test --gtest_filter=*.Timeout*)
  set_tests_properties(emu_model_${arch} emu_model_timeout_${arch} PROPERTIES LABELS emu TIMEOUT 120)
  set_tests_properties(emu_model_${arch} PROPERTIES ENVIRONMENT "EMU_MODEL_ARCH=${arch};WICK_EMU_TIMEOUT=10")
  set_tests_properties(emu_model_timeout_${arch} PROPERTIES ENVIRONMENT "EMU_MODEL_ARCH=${arch};WICK_EMU_TIMEOUT=0.5")
endforeach()

# The library reports the version of the name that it is loaded by.
foreach(version 5 6 7)
  add_test(NAME emu_hip_version_${version} COMMAND python3 ${CMAKE_CURRENT_SOURCE_DIR}/version_check.py
                                                   $<TARGET_FILE_DIR:wick_emu>/libamdhip64.so.${version} ${version})
  set_tests_properties(emu_hip_version_${version} PROPERTIES LABELS emu TIMEOUT 60)
endforeach()

# Error codes of calls that can't succeed, as AMD's own runtimes give them.
add_executable(emu_codes codes.cpp codes_extended.cpp)
target_include_directories(emu_codes PRIVATE ${EMU_ROOT})
target_link_libraries(emu_codes PRIVATE ${CMAKE_DL_LIBS})
add_test(NAME emu_hip_codes COMMAND python3 ${CMAKE_CURRENT_SOURCE_DIR}/codes_check.py codes.txt $<TARGET_FILE:emu_codes>
                                    $<TARGET_FILE_DIR:wick_emu>/libamdhip64.so.6)
add_test(NAME emu_hip_codes_7 COMMAND python3 ${CMAKE_CURRENT_SOURCE_DIR}/codes_check.py codes7.txt $<TARGET_FILE:emu_codes>
                                      $<TARGET_FILE_DIR:wick_emu>/libamdhip64.so.7 7)
add_test(NAME emu_codes_check COMMAND python3 ${CMAKE_CURRENT_SOURCE_DIR}/codes_check_test.py)
set_tests_properties(emu_hip_codes emu_hip_codes_7 emu_codes_check PROPERTIES LABELS emu TIMEOUT 60)
