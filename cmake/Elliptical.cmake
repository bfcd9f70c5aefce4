# How every target of ours is compiled: one place, so that no folder invents flags of its own.

# ccache: the sloppiness is what precompiled headers need; base_dir and no hash_dir let a second clone
# in another folder reuse the objects of the first.
find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros
      CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${CCACHE})
endif()

# clang-tidy reads no header that gcc precompiled.
option(ELLIPTICAL_TIDY "Run clang-tidy on every source" OFF)
if(ELLIPTICAL_TIDY)
  find_program(CLANG_TIDY clang-tidy HINTS ${PROJECT_SOURCE_DIR}/.venv/bin REQUIRED)
  set(CMAKE_DISABLE_PRECOMPILE_HEADERS ON)
else()
  set(ELLIPTICAL_PCH_FLAGS -fpch-preprocess)  # ccache asks for it
endif()

# A file that includes torch spends some ten seconds on torch's templates, whatever its own size, and others a
# second or more on JSON or the standard library: several files in one translation unit spend them once. Not
# for a debugger or clang-tidy, which want plain files.
option(ELLIPTICAL_UNITY "Compile in batches of files" OFF)

# elliptical_target(name): warnings, sanitizers and the include root (the repository itself).
function(elliptical_target name)
  target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR})
  # -fPIC for programs too: static libraries, programs and tests can then share one precompiled header.
  target_compile_options(${name} PRIVATE -fPIC -Wall -Wextra -Wshadow -Wnon-virtual-dtor
                                         -Wno-sign-compare -Wno-missing-field-initializers)
  # gcc 12 warns wrongly where text is added to a literal (its bug 105651).
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND NOT ELLIPTICAL_TIDY)
    target_compile_options(${name} PRIVATE -Wno-restrict)
  endif()
  if(ELLIPTICAL_WERROR)
    target_compile_options(${name} PRIVATE -Werror)
  endif()
  if(ELLIPTICAL_SANITIZE)
    target_compile_options(${name} PRIVATE -fsanitize=address,undefined -fno-sanitize-recover=undefined
                                           -fno-omit-frame-pointer)
    target_link_options(${name} PRIVATE -fsanitize=address,undefined)
    # Checks of the sanitizers make gcc 12 see sizes below 0 where there are none; theirs are the real ones.
    if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
      target_compile_options(${name} PRIVATE -Wno-stringop-overflow)
    endif()
  endif()
  if(ELLIPTICAL_FUZZ)
    target_compile_options(${name} PRIVATE -fsanitize=fuzzer-no-link)
  endif()
  if(ELLIPTICAL_TIDY)
    set_target_properties(${name} PROPERTIES CXX_CLANG_TIDY "${CLANG_TIDY};--warnings-as-errors=*;--quiet")
  endif()
endfunction()

# elliptical_torch_headers(name): links torch and precompiles torch/torch.h, 35 s once instead of 15 s
# for each file. For targets whose sources include torch/torch.h.
function(elliptical_torch_headers name)
  if(NOT TARGET elliptical_torch_pch)
    file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/torch_pch.cpp CONTENT "")
    add_library(elliptical_torch_pch OBJECT ${PROJECT_BINARY_DIR}/torch_pch.cpp)
    elliptical_target(elliptical_torch_pch)
    target_link_libraries(elliptical_torch_pch PUBLIC torch)
    target_compile_options(elliptical_torch_pch PRIVATE ${ELLIPTICAL_PCH_FLAGS})
    target_precompile_headers(elliptical_torch_pch PRIVATE <torch/torch.h>)
  endif()
  target_link_libraries(${name} PRIVATE torch)
  target_compile_options(${name} PRIVATE ${ELLIPTICAL_PCH_FLAGS})
  target_precompile_headers(${name} REUSE_FROM elliptical_torch_pch)
endfunction()

# elliptical_unity(name [ALONE source...]): batches of up to eight files of one folder, if they are asked for, of all sources but
# ALONE. For targets without Highway, whose sources include themselves once for each instruction set. The batches are ours,
# not CMake's: those name files by absolute paths, so that ccache would serve no second clone, and run across folders, so
# that a new file would change every batch behind it.
function(elliptical_unity name)
  if(NOT ELLIPTICAL_UNITY)
    return()
  endif()
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "ALONE")
  get_target_property(sources ${name} SOURCES)
  if(arg_ALONE)
    list(REMOVE_ITEM sources ${arg_ALONE})
  endif()
  set(folders)
  foreach(source ${sources})
    cmake_path(ABSOLUTE_PATH source NORMALIZE)
    cmake_path(RELATIVE_PATH source BASE_DIRECTORY ${PROJECT_SOURCE_DIR})
    cmake_path(GET source PARENT_PATH folder)
    string(MAKE_C_IDENTIFIER ${folder} folder)
    list(APPEND folders ${folder})
    list(APPEND sources_${folder} ${source})
  endforeach()
  list(REMOVE_DUPLICATES folders)
  set(batches)
  foreach(folder ${folders})
    set(count 0)
    while(sources_${folder})
      list(SUBLIST sources_${folder} 0 8 batch)
      list(REMOVE_ITEM sources_${folder} ${batch})
      list(TRANSFORM batch REPLACE "(.+)" "#include \"\\1\"")
      list(JOIN batch "\n" text)
      set(file ${CMAKE_CURRENT_BINARY_DIR}/batches/${name}_${folder}_${count}.cpp)
      file(CONFIGURE OUTPUT ${file} CONTENT "${text}\n" @ONLY)
      list(APPEND batches ${file})
      math(EXPR count "${count} + 1")
    endwhile()
  endforeach()
  set_target_properties(${name} PROPERTIES SOURCES "${batches};${arg_ALONE}")
endfunction()
