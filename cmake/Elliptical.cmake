# How every target of ours is compiled: one function, so that no folder invents flags of its own.

find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()

# elliptical_target(name): warnings, sanitizers and the include root (the repository itself).
function(elliptical_target name)
  target_include_directories(${name} PUBLIC ${CMAKE_SOURCE_DIR})
  target_compile_options(${name} PRIVATE -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Wno-sign-compare)
  if(ELLIPTICAL_WERROR)
    target_compile_options(${name} PRIVATE -Werror)
  endif()
  if(ELLIPTICAL_SANITIZE)
    target_compile_options(${name} PRIVATE -fsanitize=address,undefined -fno-sanitize-recover=undefined
                                           -fno-omit-frame-pointer)
    target_link_options(${name} PRIVATE -fsanitize=address,undefined)
  endif()
endfunction()
